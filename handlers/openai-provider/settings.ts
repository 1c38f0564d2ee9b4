import type { Context } from '../../backend-worker/handler.ts'
import { isObject, ownValue } from '../../common/json.ts'

type Fields = Record<string, unknown>

/**
 * Settings of a provider, from model-settings.json (`parameters.extra`) or section `handler` of
 * model-config.yaml.
 */
export interface ProviderSettings extends ProviderAddress {
  /** Model name at the provider; undefined: the name that the client sent. */
  model: string | undefined
  /** Number of retries after retryable failures, all before the first byte of an answer. */
  retries: number
  /** Milliseconds that the provider may stay silent, before an answer and within it; 0: no limit. */
  timeoutMs: number
  /** Settings without effect, one line each. */
  warnings: string[]
}

const OPENAI = 'https://api.openai.com/v1'
const KEY_VARIABLE = 'OPENAI_API_KEY'
const MODEL_TYPES = ['chat.completions', 'completions', 'embeddings']
const KNOWN = [
  ...[
    'provider',
    'provider_id',
    'base_url',
    'model',
    'model_id',
    'model_type',
    'api_type',
    'api_key_variable',
  ],
  ...['azure_endpoint', 'azure_deployment', 'api_version', 'azure_ad_token', 'retries', 'timeout', 'config'],
]

type ApiType = 'open_ai' | 'azure' | 'azure_ad'

/** Keys that have no effect with each API type. */
const UNUSED: Readonly<Record<ApiType, readonly string[]>> = {
  open_ai: ['azure_deployment', 'api_version', 'azure_ad_token'],
  azure: ['azure_ad_token'],
  azure_ad: [],
}

/** @throws Error that names the key; the model then fails to load */
export function readProvider(
  { modelConfig }: Pick<Context, 'modelConfig'>,
  env: NodeJS.ProcessEnv = process.env,
): ProviderSettings {
  const config = { ...extraOf(modelConfig), ...record(modelConfig['handler']) }
  const type = apiType(config)
  refuse(config, type)
  return {
    ...addressOf(config, type, env),
    model: text(config, 'model_id') ?? text(config, 'model'),
    retries: whole(config, 'retries', 2, 10),
    timeoutMs: whole(config, 'timeout', 600, 86_400) * 1000,
    warnings: idle(config, type),
  }
}

function apiType(config: Fields): ApiType {
  const type = text(config, 'api_type') ?? 'open_ai'
  if (type === 'open_ai' || type === 'azure' || type === 'azure_ad') return type
  throw new Error(`api_type must be open_ai, azure or azure_ad, found ${type}`)
}

function idle(config: Fields, type: ApiType): string[] {
  const given = Object.entries(config).flatMap(([name, value]) => (value === null ? [] : [name]))
  return [
    ...given
      .filter((name) => !KNOWN.includes(name))
      .map((name) => `${name} has no effect in the settings of the OpenAI runtime`),
    ...given
      .filter((name) => UNUSED[type].includes(name))
      .map((name) => `${name} has no effect with api_type ${type}`),
  ]
}

/** Settings in the form of Seldon's LLM module: `{ provider_id, config: { model_id, ... } }`. */
function extraOf(modelConfig: Readonly<Fields>): Fields {
  const parameters = record(record(modelConfig['modelSettings'])['parameters'])
  const extra = record(parameters['extra'])
  return { ...extra, ...record(extra['config']) }
}

function refuse(config: Fields, type: ApiType): void {
  const provider = text(config, 'provider_id') ?? text(config, 'provider') ?? 'openai'
  if (provider !== 'openai')
    throw new Error(
      `provider ${provider} is not supported; for a server with the OpenAI API set provider openai and base_url`,
    )
  const asked = text(config, 'model_type')
  if (asked !== undefined && !MODEL_TYPES.includes(asked))
    throw new Error(`model_type must be one of ${MODEL_TYPES.join(', ')}, found ${asked}`)
  // Ignoring the other type's address would send requests and the key to the default address.
  const address = type === 'open_ai' ? 'azure_endpoint' : 'base_url'
  if (config[address] != null) throw new Error(`${address} is not supported with api_type ${type}`)
  if (config['prompt_utils'] != null) throw new Error('prompt_utils is not supported')
  if (config['api_key'] != null)
    throw new Error(
      'api_key is not supported in a file; set api_key_variable to the name of an environment variable',
    )
}

function addressOf(config: Fields, type: ApiType, env: NodeJS.ProcessEnv): ProviderAddress {
  if (type !== 'open_ai') return azureAddress(config, type, env)
  return {
    baseUrl: baseUrl(config, 'base_url') ?? OPENAI,
    query: '',
    key: key(config, KEY_VARIABLE, env),
    keyHeader: 'authorization',
  }
}

/** URL and credentials of a provider. */
interface ProviderAddress {
  /** Without a trailing slash: `https://api.openai.com/v1`. */
  baseUrl: string
  /** Query string for every path, with its question mark. */
  query: string
  /** Undefined: no key is sent. */
  key: string | undefined
  /** Header for the key: `Authorization: Bearer`, or Azure's own. */
  keyHeader: 'authorization' | 'api-key'
}

/**
 * OpenAI's models at Azure: the path contains a deployment, the query the API version. `azure` sends a key,
 * `azure_ad` an Entra ID token. See Azure OpenAI's REST API reference.
 * @throws Error that names the key
 */
function azureAddress(config: Fields, type: 'azure' | 'azure_ad', env: NodeJS.ProcessEnv): ProviderAddress {
  const endpoint = baseUrl(config, 'azure_endpoint') ?? missing('azure_endpoint')
  const deployment =
    text(config, 'azure_deployment') ?? text(config, 'model_id') ?? missing('azure_deployment')
  const version = text(config, 'api_version') ?? env['OPENAI_API_VERSION'] ?? missing('api_version')
  return {
    baseUrl: `${endpoint}/openai/deployments/${encodeURIComponent(deployment)}`,
    query: `?api-version=${encodeURIComponent(version)}`,
    ...(type === 'azure'
      ? { key: key(config, 'AZURE_OPENAI_API_KEY', env), keyHeader: 'api-key' }
      : {
          key: text(config, 'azure_ad_token') ?? key(config, 'AZURE_OPENAI_AD_TOKEN', env),
          keyHeader: 'authorization',
        }),
  }
}

function missing(name: string): never {
  throw new Error(`${name} is required with Azure`)
}

function text(config: Fields, name: string): string | undefined {
  const value = ownValue(config, name)
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && value !== '') return value
  throw new Error(`${name} must be a non-empty string`)
}

function whole(config: Fields, name: string, absent: number, max: number): number {
  const value = ownValue(config, name) ?? absent
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new Error(`${name} must be a whole number up to ${max}`)
}

/** A URL without trailing slashes. */
function baseUrl(config: Fields, name: string): string | undefined {
  const given = text(config, name)
  if (given === undefined) return undefined
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new Error(`${name} must be an http(s) URL without user and query`)
  return given.replace(/\/+$/, '')
}

/**
 * The key in the variable that api_key_variable names. Only the default variable may be unset, for servers
 * without keys.
 */
function key(config: Fields, usual: string, env: NodeJS.ProcessEnv): string | undefined {
  const variable = text(config, 'api_key_variable')
  const value = ownValue(env, variable ?? usual)
  if (variable !== undefined && !value)
    throw new Error(`api_key_variable must name a variable that is set for the server, found ${variable}`)
  return value?.trim() || undefined
}

function record(value: unknown): Fields {
  return isObject(value) ? value : {}
}
