/** A key of TorchServe that is accepted here and does nothing. */
export interface InertKey {
  readonly name: string
  /** Completes "<key> has no effect here: ". */
  readonly reason: string
}

const JAVA = 'it tunes the Java server; Node.js has one event loop'
const PYTHON = 'there are no Python workers yet'
const SNAPSHOTS = 'snapshots are neither written nor read yet'
const PORTS = 'free ports and random socket names are chosen'

export const INERT_KEYS: readonly InertKey[] = [
  ...inert(JAVA, 'number_of_netty_threads', 'netty_client_threads', 'prefer_direct_buffer'),
  ...inert(JAVA, 'use_native_io', 'io_ratio', 'vmargs', 'async_logging'),
  ...inert(PYTHON, 'python', 'install_py_dep_per_model', 'cpu_launcher_enable', 'cpu_launcher_args'),
  ...inert(PYTHON, 'ipex_enable', 'ipex_gpu_enable', 'limit_max_image_pixels', 'cpp_log_config'),
  ...inert(SNAPSHOTS, 'model_snapshot'),
  ...inert('the server reads CPU, memory and disk itself', 'system_metrics_cmd'),
  ...inert(PORTS, 'initial_worker_port', 'initial_distribution_port'),
  ...inert('devices are not assigned to workers yet', 'number_of_gpu'),
  ...inert('request envelopes do not exist yet', 'service_envelope'),
  ...inert('the package knows its own folder', 'model_server_home'),
  ...inert('plugins are Java classes', 'plugins_path'),
]

/** The variable that sets a key: `TS_` before it, unless it starts so itself. */
export function envNameOf(key: string): string {
  return key.startsWith('ts_') ? key.toUpperCase() : `TS_${key.toUpperCase()}`
}

function inert(reason: string, ...names: string[]): InertKey[] {
  return names.map((name) => ({ name, reason }))
}
