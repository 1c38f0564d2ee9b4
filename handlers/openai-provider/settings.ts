import type { Context } from '../../backend-worker/handler.ts'
import type { ProviderAddress } from './address.ts'
import { azureAddress } from './azure.ts'
import { baseUrl, type Fields, key, record, text, whole } from './fields.ts'

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
