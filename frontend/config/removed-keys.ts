import { ServeError } from '../../common/errors.ts'
import { isObject } from '../../common/json.ts'
import { shownValue } from './properties.ts'
import { envNameOf } from './key-spec.ts'

/** A key that was removed, and what takes its place. */
interface RemovedKey {
  /** In config.properties; undefined: only a model's section `sandbox` had it. */
  readonly name?: string
  /** In the section `sandbox` of model-config.yaml; undefined: none. */
  readonly ofModel?: string
  /** The values that only loosened. Any other value is refused. */
  readonly loosened: RegExp
  /** What to do instead. */
  readonly advice: string
  /** The warning about a value that only loosened. */
  readonly noEffect: string
}

const ANY = /.*/s
const NONE = /(?!)/
/** A list of all algorithms that the server accepts, in any order. */
const ALL_ALGORITHMS = new RegExp(
  ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA']
    .map((each) => `(?=.*\\b${each}\\b)`)
    .join(''),
)
const ZERO = /^0+(\.0*)?$/

const WRAPPER = {
  advice: 'confine workers with worker_wrapper (docs/worker-wrapper.md)',
  noEffect: 'has no effect: workers have the rights and the environment of the server',
}
const PINS = {
  advice: 'pin the SHA-256 of archives in models or load_models (docs/trusted-archives.md)',
  noEffect: 'has no effect: signatures of archives are not checked',
}
const COPY = 'copy archives into the model store, or register them by URL'
const POLL = { advice: 'remove it', noEffect: 'has no effect: the server does not poll workers' }
const BY_ADDRESS = {
  advice: 'limit clients by address in a proxy, and keys with the key_... limits (docs/security.md)',
  noEffect: 'has no effect: the server has no limits by address',
}
const CONNECTIONS = {
  advice: 'set max_connections',
  noEffect: 'has no effect: max_connections limits all connections, and one address has at most half of them',
}
const PACE = { advice: 'remove it', noEffect: 'has no effect: new connections are not slowed down' }
const SCALING = {
  advice: 'set it in the section scaling of model-config.yaml (docs/autoscaling.md)',
  noEffect: 'has no effect: model-config.yaml has it in the section scaling (docs/autoscaling.md)',
}
/** A limit that is constant now. */
function fixed(is: string): Pick<RemovedKey, 'loosened' | 'advice' | 'noEffect'> {
  return { loosened: ANY, advice: 'remove it', noEffect: `has no effect: ${is}` }
}
const FIXED = 'the limit is fixed (docs/grpc.md)'
const BYTES = {
  advice: 'set max_unfinished_bytes',
  noEffect: 'has no effect: max_unfinished_bytes limits the bytes of requests and of unread answers',
}
const UPLOADS = { advice: COPY, noEffect: `has no effect: ${COPY}` }

const KEYS: readonly RemovedKey[] = [
  { name: 'sandbox', ofModel: 'mode', loosened: /^(off|false|default)$/i, ...WRAPPER },
  { name: 'sandbox_by_model', loosened: ANY, ...WRAPPER },
  { name: 'sandbox_read', ofModel: 'read', loosened: ANY, ...WRAPPER },
  { name: 'sandbox_write', ofModel: 'write', loosened: ANY, ...WRAPPER },
  { name: 'worker_env', ofModel: 'env', loosened: ANY, ...WRAPPER },
  { name: 'model_env', loosened: ANY, ...WRAPPER },
  { name: 'worker_network', ofModel: 'network', loosened: /^true$/i, ...WRAPPER },
  { name: 'worker_memory', ofModel: 'memory', loosened: NONE, ...WRAPPER },
  { name: 'worker_processes', ofModel: 'processes', loosened: NONE, ...WRAPPER },
  { name: 'worker_open_files', ofModel: 'openFiles', loosened: NONE, ...WRAPPER },
  { ofModel: 'headers', loosened: ANY, ...WRAPPER },
  { name: 'require_signed_archives', loosened: /^false$/i, ...PINS },
  { name: 'archive_signers_file', loosened: NONE, ...PINS },
  { name: 'enable_archive_upload', loosened: ANY, ...UPLOADS },
  { name: 'busy_poll_microseconds', loosened: ANY, ...POLL },
  { name: 'max_new_connections_per_address', loosened: ANY, ...PACE },
  { name: 'max_connections_per_address', loosened: ANY, ...CONNECTIONS },
  { name: 'grpc_max_connections', loosened: ANY, ...CONNECTIONS },
  { name: 'grpc_max_connections_per_address', loosened: ANY, ...CONNECTIONS },
  { name: 'max_unread_bytes', loosened: ANY, ...BYTES },
  { name: 'grpc_max_connection_bytes', loosened: ANY, ...BYTES },
  { name: 'grpc_max_waiting_bytes', loosened: ANY, ...BYTES },
  { name: 'grpc_max_metadata_size', ...fixed(FIXED) },
  { name: 'grpc_max_decompression_ratio', ...fixed(FIXED) },
  { name: 'grpc_message_timeout', ...fixed(FIXED) },
  { name: 'grpc_max_connection_idle', ...fixed(FIXED) },
  { name: 'address_requests_per_second', loosened: ZERO, ...BY_ADDRESS },
  { name: 'address_concurrent_streams', loosened: ZERO, ...BY_ADDRESS },
  { name: 'address_bytes_per_second', loosened: ZERO, ...BY_ADDRESS },
  { name: 'scaling_target_queue_time', loosened: ANY, ...SCALING },
  { name: 'scale_up_interval', loosened: ANY, ...SCALING },
  { name: 'scale_down_after', loosened: ANY, ...SCALING },
  {
    ...{ name: 'jwt_algorithms', loosened: ALL_ALGORITHMS },
    advice: 'remove it, and publish only keys with the algorithms that you accept',
    noEffect: 'has no effect: all these algorithms are accepted',
  },
  { name: 'jwt_clock_skew', ...fixed('the clock of the issuer may be off by 30 s') },
  { name: 'max_snapshots', ...fixed('the newest 50 snapshots are kept') },
  { name: 'max_workers_per_model', ...fixed('a model version may have 256 worker processes') },
  { name: 'model_drain_timeout', ...fixed('it is 600 s, or a longer unregister_model_timeout') },
  { name: 'max_download_size', ...fixed('max_unpacked_size also limits downloads') },
  { name: 'max_archive_ratio', ...fixed('it is 100; a folder has no such limit') },
  { name: 'unpack_timeout', ...fixed('it is 600 s; a folder has no such limit') },
]

export const REMOVED_KEYS: ReadonlyMap<string, RemovedKey> = new Map(
  KEYS.flatMap((key) => (key.name === undefined ? [] : [[key.name, key]])),
)

/**
 * @returns the warning about a removed key of the server that only loosened
 * @throws ServeError CONFIG for a value that tightened
 */
export function removedKey(name: string, text: string, origin: string): string {
  const { loosened, noEffect, advice } = REMOVED_KEYS.get(name)!
  if (loosened.test(text)) return `${origin}: ${name} ${noEffect}`
  throw new ServeError('CONFIG', `${origin}: ${name}=${shownValue(name, text)} is not supported: ${advice}`)
}

/**
 * @param section the value of `sandbox` in model-config.yaml
 * @returns the warning about a section that only loosened; undefined: there is none
 * @throws ServeError INVALID_MODEL for a section that confined the workers
 */
export function removedSection(section: unknown): string | undefined {
  if (section === undefined || section === null) return undefined
  const entries = isObject(section) ? Object.entries(section) : [['mode', section] as const]
  for (const [key, value] of entries) {
    const removed = KEYS.find(({ ofModel }) => ofModel === key)
    if (removed?.loosened.test(String(value)) === true) continue
    throw new ServeError('INVALID_MODEL', `sandbox in model-config.yaml is not supported: ${WRAPPER.advice}`)
  }
  return `sandbox ${WRAPPER.noEffect}; handler_credentials names the headers with credentials that handlers get`
}

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
