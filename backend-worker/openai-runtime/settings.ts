import type { Context } from '../handler.ts'

/** How a provider is reached: from model-settings.json (`parameters.extra`) or the part `handler` of model-config.yaml. */
export interface ProviderSettings {
  /** Without a slash at its end: `https://api.openai.com/v1`. */
  baseUrl: string
  /** What the provider calls the model; undefined: what the client wrote. */
  model: string | undefined
  /** Sent as `Authorization: Bearer`; undefined: nothing is sent. */
  key: string | undefined
  /** Further tries after a failure that another try may help against, all before the first byte of an answer. */
  retries: number
  /** Milliseconds to the head of an answer. */
  timeoutMs: number
}

type Fields = Record<string, unknown>

const OPENAI = 'https://api.openai.com/v1'
const KEY_VARIABLE = 'OPENAI_API_KEY'

/** @throws Error that names the key: the model then fails to load with this reason */
export function readProvider(
  { modelConfig }: Pick<Context, 'modelConfig'>,
  env: NodeJS.ProcessEnv = process.env,
): ProviderSettings {
  const config = { ...extraOf(modelConfig), ...record(modelConfig['handler']) }
  const provider = text(config, 'provider_id') ?? text(config, 'provider') ?? 'openai'
  if (provider !== 'openai') throw new Error(`provider ${provider} is not known; only openai is`)
  return {
    baseUrl: baseUrl(text(config, 'base_url')),
    model: text(config, 'model_id') ?? text(config, 'model'),
    key: key(text(config, 'api_key_variable'), env),
    retries: whole(config, 'retries', 2, 10),
    timeoutMs: whole(config, 'timeout', 120, 86_400) * 1000,
  }
}

/** As Seldon's LLM module has it (spec 4.6): `{ provider_id, config: { model_id, ... } }`. */
function extraOf(modelConfig: Readonly<Record<string, unknown>>): Fields {
  const parameters = record(record(modelConfig['modelSettings'])['parameters'])
  const extra = record(parameters['extra'])
  return { ...extra, ...record(extra['config']) }
}

function baseUrl(given: string | undefined): string {
  if (given === undefined) return OPENAI
  const url = URL.canParse(given) ? new URL(given) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.username !== '' || url.search !== '')
    throw new Error('base_url must be an http(s) URL without user and query')
  return given.replace(/\/+$/, '')
}

/** A variable that was named must be there; the usual one may be missing, since many servers want no key. */
function key(variable: string | undefined, env: NodeJS.ProcessEnv): string | undefined {
  const value = env[variable ?? KEY_VARIABLE]
  if (variable !== undefined && !value)
    throw new Error(`api_key_variable: ${variable} is not set in the environment`)
  return value?.trim() || undefined
}

function text(config: Fields, name: string): string | undefined {
  const value = config[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string' && value !== '') return value
  throw new Error(`${name} must be a text that is not empty`)
}

function whole(config: Fields, name: string, absent: number, max: number): number {
  const value = config[name] ?? absent
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= max) return value
  throw new Error(`${name} must be a whole number up to ${max}`)
}

function record(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {}
}
