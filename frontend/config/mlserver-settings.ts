import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isObject, parseJson } from '../../common/json.ts'
import type { Entry, Environment } from './properties.ts'

/** MLServer's server settings, in the model store (MLServer's documentation, "Settings"). */
const FILE = 'settings.json'
const MAX_BYTES = 1024 * 1024

/** Seldon Core's agent names the folder of models in this variable. */
const MODELS_DIR = 'MLSERVER_MODELS_DIR'
const FROM_MODELS_DIR = `environment variable ${MODELS_DIR}`

/** Whether the folder of models is the agent's, which fills it, and may make it, while the server runs. */
export function isAgentsStore(store: Entry | undefined): boolean {
  return store?.origin === FROM_MODELS_DIR
}

type Settings = Readonly<Record<string, unknown>>

/** MLServer's defaults, which apply instead of this server's. */
const DEFAULTS: Settings = {
  host: '0.0.0.0',
  http_port: 8080,
  grpc_port: 8081,
  metrics_port: 8082,
  metrics_endpoint: '/metrics',
  parallel_workers: 1,
  gzip_enabled: true,
  load_models_at_startup: true,
}

/** MLServer has no management listener, and its default gRPC port is this server's management port. */
const MANAGEMENT_ADDRESS = 'http://127.0.0.1:8083'

/** Settings that have an effect here. The others get a warning. */
const UNDERSTOOD: ReadonlySet<string> = new Set([
  ...Object.keys(DEFAULTS),
  ...['debug', 'cors_settings', 'grpc_max_message_length', 'model_repository_root'],
])

/** MLServer's settings as keys of this server; the configuration file and the flags override them. */
interface MlserverSettings {
  readonly entries: readonly Entry[]
  readonly warnings: readonly string[]
}

const NONE: MlserverSettings = { entries: [], warnings: [] }

/**
 * Reads settings.json of the model store, which defaults to MLSERVER_MODELS_DIR. If the file exists or that
 * variable is set, MLServer's defaults apply, and MLSERVER_<KEY> variables fill in what the file omits.
 * @throws ServeError CONFIG
 */
export async function readMlserverSettings(
  modelStore: string | undefined,
  env: Environment,
): Promise<MlserverSettings> {
  const fromEnv = env[MODELS_DIR]?.trim() || undefined
  const folder = modelStore ?? fromEnv
  const file = folder === undefined ? undefined : await readSettings(join(folder, FILE))
  if (folder === undefined || (file === undefined && fromEnv === undefined)) return NONE
  const origin = file === undefined ? FROM_MODELS_DIR : join(folder, FILE)
  const variables = fromEnvironment(env)
  const fromVariables = Object.fromEntries([...variables].map(([key, { value }]) => [key, value]))
  const settings = { ...DEFAULTS, ...fromVariables, ...file }
  // The file overrides variables.
  const originOf = (key: string): string => {
    const variable = variables.get(key)?.variable
    const isOfFile = variable === undefined || (file !== undefined && Object.hasOwn(file, key))
    return isOfFile ? origin : `environment variable ${variable}`
  }
  const entries = [...keys(settings, folder)].map(([name, text, key]): Entry => ({
    name,
    text,
    origin: key === undefined ? origin : originOf(key),
  }))
  const unread = inert({ ...fromVariables, ...file })
  const warnings = unread.map(([key, what]) => `${originOf(key)}: ${what} has no effect here`)
  return { entries, warnings }
}

/** Settings that the user gave and that have no effect, each with what of it has none. */
function inert(given: Settings): [key: string, what: string][] {
  const unknown = Object.keys(given).filter((key) => !UNDERSTOOD.has(key))
  const found = unknown.map((key): [string, string] => [key, key])
  const { metrics_endpoint: endpoint } = given
  if (endpoint !== undefined && endpoint !== null && endpoint !== DEFAULTS['metrics_endpoint'])
    found.push(['metrics_endpoint', 'a metrics_endpoint other than /metrics'])
  return found
}

async function readSettings(path: string): Promise<Settings | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isFile() !== true) return undefined
  if (stats.size > MAX_BYTES) throw new ServeError('CONFIG', `${path} must have at most ${MAX_BYTES} bytes`)
  let value: unknown
  try {
    value = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new ServeError('CONFIG', `${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  if (isObject(value)) return value
  throw new ServeError('CONFIG', `${path} must be a JSON object`)
}

/**
 * Variables MLSERVER_<KEY>, in any letter case. Values that are JSON (numbers, booleans, objects) are parsed.
 */
function fromEnvironment(env: Environment): Map<string, { variable: string; value: unknown }> {
  const found = new Map<string, { variable: string; value: unknown }>()
  for (const [name, text = ''] of Object.entries(env)) {
    const key = /^MLSERVER_(.+)$/i.exec(name)?.[1]?.toLowerCase()
    if (key === undefined || isOfModels(key) || text.trim() === '') continue
    found.set(key, { variable: name, value: jsonOrText(text.trim()) })
  }
  return found
}

/** Variables for model-settings.json, or for the folder of the models. */
function isOfModels(key: string): boolean {
  return key === 'models_dir' || (key.startsWith('model_') && key !== 'model_repository_root')
}

function jsonOrText(text: string): unknown {
  const value = parseJson(text)
  if (value !== undefined) return value
  return /^(true|false)$/i.test(text) ? text.toLowerCase() === 'true' : text
}

/** Keys of this server, each with the setting that it comes from; without one it does not depend on any. */
function* keys(settings: Settings, folder: string): Generator<[name: string, text: string, key?: string]> {
  const {
    host,
    http_port,
    grpc_port,
    metrics_port,
    metrics_endpoint,
    grpc_max_message_length: max,
  } = settings
  const address = (port: unknown): string => `http://${bracketed(said(host))}:${said(port)}`
  const root = settings['model_repository_root']
  yield ['model_store', typeof root === 'string' ? resolve(folder, root) : folder]
  yield ['load_models', settings['load_models_at_startup'] === false ? '' : 'all', 'load_models_at_startup']
  yield ['inference_address', address(http_port), 'http_port']
  yield ['management_address', MANAGEMENT_ADDRESS]
  yield ['open_inference_grpc_address', said(host), 'host']
  yield ['open_inference_grpc_port', said(grpc_port), 'grpc_port']
  yield ['metrics_address', address(metrics_port), 'metrics_port']
  if (metrics_endpoint === null) yield ['enable_metrics_api', 'false', 'metrics_endpoint']
  yield [
    'default_workers_per_model',
    String(Math.max(1, Number(settings['parallel_workers']) || 1)),
    'parallel_workers',
  ]
  yield ['open_inference_gzip', String(settings['gzip_enabled'] !== false), 'gzip_enabled']
  // MLServer's infer path is the protocol's, and who has no file sets keys by variables.
  yield ['ts_open_inference_protocol', 'true']
  yield ['enable_envvars_config', 'true']
  yield ['job_queue_size', QUEUE]
  if (settings['debug'] === true) yield ['debug', 'true', 'debug']
  if (typeof max === 'number')
    for (const key of ['max_request_size', 'max_response_size'])
      yield [key, String(max < 0 ? UNLIMITED : max), 'grpc_max_message_length']
  yield* corsKeys(settings['cors_settings'])
}

/** MLServer queues without a limit, and its clients count on that in a burst. */
const QUEUE = '1000'
const UNLIMITED = 2_147_483_647

function* corsKeys(cors: unknown): Generator<[name: string, text: string, key: string]> {
  if (typeof cors !== 'object' || cors === null) return
  const { allow_origins, allow_methods, allow_headers, expose_headers } = cors as Settings
  const list = (value: unknown): string => (Array.isArray(value) ? value.map(said).join(',') : '')
  yield ['cors_allowed_origin', list(allow_origins), 'cors_settings']
  yield ['cors_allowed_methods', list(allow_methods ?? ['GET']), 'cors_settings']
  yield ['cors_allowed_headers', list(allow_headers), 'cors_settings']
  yield ['cors_exposed_headers', list(expose_headers), 'cors_settings']
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function said(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
