import { envNameOf } from './key-spec.ts'

/** A key of TorchServe that this server accepts but does not use. */
interface InertKey {
  readonly name: string
  /** Completes "<key> has no effect here: ". */
  readonly reason: string
}

const JAVA = 'it tunes the Java server'
const PYTHON = 'the CPU launcher is not supported'

export const INERT_KEYS: readonly InertKey[] = [
  ...inert(JAVA, 'number_of_netty_threads', 'netty_client_threads', 'prefer_direct_buffer'),
  ...inert(JAVA, 'use_native_io', 'io_ratio', 'async_logging'),
  ...inert(`${JAVA}; of its log4j.configurationFile the server reads levels and files`, 'vmargs'),
  ...inert(PYTHON, 'cpu_launcher_enable', 'cpu_launcher_args'),
  ...inert('C++ workers are not supported', 'cpp_log_config'),
  ...inert('the server reads CPU, memory and disk itself', 'system_metrics_cmd'),
  ...inert('Java plugins are not supported', 'plugins_path'),
]

/** TorchServe reads these keys only from the file. */
const NOT_BY_ENV: ReadonlySet<string> = new Set([
  'use_native_io',
  'io_ratio',
  'vmargs',
  'plugins_path',
  'system_metrics_cmd',
  'metric_time_interval',
])

/** The variable that sets an inert key; undefined: no variable does. */
export function inertEnvName(key: string): string | undefined {
  return NOT_BY_ENV.has(key) ? undefined : envNameOf(key)
}

function inert(reason: string, ...names: string[]): InertKey[] {
  return names.map((name) => ({ name, reason }))
}
