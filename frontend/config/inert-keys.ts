/** A key of TorchServe that is accepted here and does nothing. */
export interface InertKey {
  readonly name: string
  /** Completes "<key> has no effect here: ". */
  readonly reason: string
  /** A value that must not be ignored, since the user would be served with less safety than asked for. */
  readonly refused?: string
  /** Its variable counts without enable_envvars_config. */
  readonly alwaysByEnv?: true
}

const JAVA = 'it tunes the Java server; Node.js has one event loop'
const PYTHON = 'there are no Python workers yet'
const TLS = 'TLS is not served yet'
const SNAPSHOTS = 'snapshots are neither written nor read yet'
const WORKFLOWS = 'workflows are not served yet'
const AGE = 'gRPC connections have no age limit yet'
const PORTS = 'free ports and random socket names are chosen'

export const INERT_KEYS: readonly InertKey[] = [
  ...inert(JAVA, 'number_of_netty_threads', 'netty_client_threads', 'prefer_direct_buffer'),
  ...inert(JAVA, 'use_native_io', 'io_ratio', 'vmargs', 'async_logging'),
  ...inert(PYTHON, 'python', 'install_py_dep_per_model', 'cpu_launcher_enable', 'cpu_launcher_args'),
  ...inert(PYTHON, 'ipex_enable', 'ipex_gpu_enable', 'limit_max_image_pixels', 'cpp_log_config'),
  ...inert(TLS, 'keystore', 'keystore_pass', 'keystore_type', 'private_key_file', 'certificate_file'),
  { name: 'enable_grpc_ssl', reason: TLS, refused: 'true' },
  ...inert(SNAPSHOTS, 'model_snapshot'),
  ...inert(WORKFLOWS, 'workflow_store'),
  ...inert('the server reads CPU, memory and disk itself', 'system_metrics_cmd'),
  ...inert(AGE, 'grpc_inference_max_connection_age_ms', 'grpc_management_max_connection_age_ms'),
  ...inert(AGE, 'grpc_inference_max_connection_age_grace_ms', 'grpc_management_max_connection_age_grace_ms'),
  ...inert(PORTS, 'initial_worker_port', 'initial_distribution_port'),
  ...inert('devices are not assigned to workers yet', 'number_of_gpu'),
  {
    name: 'ts_open_inference_protocol',
    reason: 'the Open Inference Protocol is not served yet',
    alwaysByEnv: true,
  },
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
