import { readFile, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { isObject, parseJson } from '../../common/json.ts'
import { setOwn } from '../../common/own-keys.ts'
import type { Entry, Environment } from './properties.ts'

/** MLServer's file about the server, in the model store (spec 3.5). */
const FILE = 'settings.json'
const MAX_BYTES = 1024 * 1024

/** Folder of models where Seldon's agent puts them. */
const MODELS_DIR = 'MLSERVER_MODELS_DIR'

type Settings = Readonly<Record<string, unknown>>

/** MLServer's defaults of what would else be this server's. */
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

/** MLServer has no such listener; its gRPC port is this server's management port. */
const MANAGEMENT_ADDRESS = 'http://127.0.0.1:8083'

/** All others are MLServer's own matter. */
const UNDERSTOOD: ReadonlySet<string> = new Set([
  ...Object.keys(DEFAULTS),
  ...['debug', 'cors_settings', 'grpc_max_message_length', 'model_repository_root'],
])

/** What MLServer's settings mean in this server's keys; they give way to the configuration file and the flags. */
interface MlserverSettings {
  readonly entries: readonly Entry[]
  readonly warnings: readonly string[]
}

const NONE: MlserverSettings = { entries: [], warnings: [] }

/**
 * Reads settings.json of the model store. Without a store it is MLSERVER_MODELS_DIR. Where the file or that variable is there, this server starts with the defaults
 * of MLServer, and variables MLSERVER_<KEY> stand in for what the file leaves out.
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
  const origin = file === undefined ? `environment variable ${MODELS_DIR}` : join(folder, FILE)
  const given = { ...fromEnvironment(env), ...file }
  const settings = { ...DEFAULTS, ...given }
  const entries = [...keys(settings, folder)].map(([name, text]): Entry => ({ name, text, origin }))
  return { entries, warnings: inert(given).map((what) => `${origin}: ${what} has no effect here`) }
}

/** What was given in vain. */
function inert(given: Settings): string[] {
  const unknown = Object.keys(given).filter((key) => !UNDERSTOOD.has(key))
  const { metrics_endpoint: endpoint, cors_settings: cors } = given
  if (endpoint !== undefined && endpoint !== null && endpoint !== DEFAULTS['metrics_endpoint'])
    unknown.push('another metrics_endpoint than /metrics')
  const origins = (cors as { allow_origins?: unknown } | null | undefined)?.allow_origins
  if (Array.isArray(origins) && origins.length > 1)
    unknown.push('cors_settings.allow_origins after the first')
  return unknown
}

async function readSettings(path: string): Promise<Settings | undefined> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isFile() !== true) return undefined
  if (stats.size > MAX_BYTES) throw new ServeError('CONFIG', `${path} is larger than ${MAX_BYTES} bytes`)
  let value: unknown
  try {
    value = JSON.parse(await readFile(path, 'utf8'))
  } catch (cause) {
    throw new ServeError('CONFIG', `${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  if (isObject(value)) return value
  throw new ServeError('CONFIG', `${path} holds no JSON object`)
}

/** `MLSERVER_HTTP_PORT` and the like, whatever their case. Texts that are JSON (numbers, true, false, objects) are what they say. */
function fromEnvironment(env: Environment): Settings {
  const found: Record<string, unknown> = {}
  for (const [name, text = ''] of Object.entries(env)) {
    const key = /^MLSERVER_(.+)$/i.exec(name)?.[1]?.toLowerCase()
    if (key === undefined || isOfModels(key) || text.trim() === '') continue
    setOwn(found, key, jsonOrText(text.trim()))
  }
  return found
}

/** Variables that stand in for keys of model-settings.json, or say where the models are. */
function isOfModels(key: string): boolean {
  return key === 'models_dir' || (key.startsWith('model_') && key !== 'model_repository_root')
}

function jsonOrText(text: string): unknown {
  const value = parseJson(text)
  if (value !== undefined) return value
  return /^(true|false)$/i.test(text) ? text.toLowerCase() === 'true' : text
}

function* keys(settings: Settings, folder: string): Generator<[name: string, text: string]> {
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
  yield ['load_models', settings['load_models_at_startup'] === false ? '' : 'all']
  yield ['inference_address', address(http_port)]
  yield ['management_address', MANAGEMENT_ADDRESS]
  yield ['open_inference_grpc_address', said(host)]
  yield ['open_inference_grpc_port', said(grpc_port)]
  yield ['metrics_address', address(metrics_port)]
  if (metrics_endpoint === null) yield ['enable_metrics_api', 'false']
  yield ['default_workers_per_model', String(Math.max(1, Number(settings['parallel_workers']) || 1))]
  yield ['open_inference_gzip', String(settings['gzip_enabled'] !== false)]
  if (settings['debug'] === true) yield ['debug', 'true']
  if (typeof max === 'number') yield ['max_request_size', String(max < 0 ? UNLIMITED : max)]
  yield* corsKeys(settings['cors_settings'])
}

const UNLIMITED = 2_147_483_647

function* corsKeys(cors: unknown): Generator<[name: string, text: string]> {
  if (typeof cors !== 'object' || cors === null) return
  const { allow_origins, allow_methods, allow_headers } = cors as Settings
  const list = (value: unknown): string => (Array.isArray(value) ? value.map(said).join(',') : '')
  // One header can name one origin, or all.
  yield ['cors_allowed_origin', Array.isArray(allow_origins) ? said(allow_origins[0]) : '']
  yield ['cors_allowed_methods', list(allow_methods ?? ['GET'])]
  yield ['cors_allowed_headers', list(allow_headers)]
}

function bracketed(host: string): string {
  return host.includes(':') ? `[${host}]` : host
}

function said(value: unknown): string {
  return typeof value === 'string' ? value : value === undefined ? '' : JSON.stringify(value)
}
