import { randomInt } from 'node:crypto'
import { type HandlerRequest, PredictionException } from 'torchserve-ts'
import type { Fields, SamplingDefaults } from './settings.ts'

/** The parameters of a request. */
export interface Completion {
  prompt: string
  /** At least 1; the context limits it too. */
  maxTokens: number
  /** 0 to 2; 0 always takes the most likely token. */
  temperature: number
  /** Above 0, up to 1. */
  topP: number
  /** The same seed gives the same text. Default: random. */
  seed: number
  /** The text ends before the first occurrence of any of these. */
  stop: string[]
  /** Default true: texts of special tokens, such as `<|im_end|>`, become these tokens. */
  parseSpecial: boolean
  /** Default true; false: the whole text in one answer. */
  stream: boolean
}

const NAMES = [
  ...(['prompt', 'max_tokens', 'temperature', 'top_p', 'seed', 'stop', 'parse_special', 'stream'] as const),
]
type Name = (typeof NAMES)[number]
const MAX_SEED = 2 ** 32 - 1
const MAX_STOPS = 16
const MAX_STOP_LENGTH = 256

/** @throws PredictionException 400 that names the parameter */
export function readCompletion(
  request: HandlerRequest,
  defaults: Pick<SamplingDefaults, 'maxTokens' | 'temperature' | 'topP'>,
): Completion {
  const fields = readFields(request)
  refuseUnknown(fields)
  return {
    prompt: prompt(fields['prompt']),
    maxTokens: whole(fields, 'max_tokens', defaults.maxTokens, 1, Number.MAX_SAFE_INTEGER),
    temperature: number(fields, 'temperature', defaults.temperature, 0, 2),
    topP: topP(fields, defaults.topP),
    seed: whole(fields, 'seed', undefined, 0, MAX_SEED),
    stop: stops(fields['stop']),
    parseSpecial: flag(fields, 'parse_special', true),
    stream: flag(fields, 'stream', true),
  }
}

function refuseUnknown(fields: Fields): void {
  const unknown = Object.keys(fields).find((name) => !(NAMES as readonly string[]).includes(name))
  if (unknown === undefined) return
  if (unknown.startsWith('{')) throw bad('Send JSON with the header content-type: application/json')
  throw bad(`Parameter ${unknown.slice(0, 40)} is not supported; use ${NAMES.join(', ')}`)
}

function prompt(value: unknown): string {
  if (typeof value === 'string' && value !== '') return value
  throw bad('prompt must be a non-empty string')
}

function topP(fields: Fields, absent: number): number {
  const value = number(fields, 'top_p', absent, 0, 1)
  if (value === 0) throw bad('top_p must be above 0')
  return value
}

function whole(fields: Fields, name: Name, absent: number | undefined, min: number, max: number): number {
  const value = number(fields, name, absent ?? randomInt(MAX_SEED), min, max)
  if (!Number.isInteger(value)) throw bad(`${name} must be a whole number`)
  return value
}

/** Forms and gRPC inputs contain numbers as text. */
function number(fields: Fields, name: Name, absent: number, min: number, max: number): number {
  const given = fields[name] ?? absent
  const value = typeof given === 'string' && given.trim() !== '' ? Number(given) : given
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw bad(`${name} must be a number from ${min} to ${max}`)
}

function flag(fields: Fields, name: Name, absent: boolean): boolean {
  const value = fields[name] ?? absent
  if (typeof value === 'boolean') return value
  if (value === 'true' || value === 'false') return value === 'true'
  throw bad(`${name} must be true or false`)
}

function stops(value: unknown): string[] {
  const list = stopList(value)
  const fits = (stop: unknown): stop is string =>
    typeof stop === 'string' && stop !== '' && stop.length <= MAX_STOP_LENGTH
  if (list.length <= MAX_STOPS && list.every(fits)) return list
  throw bad(`stop must be a string or up to ${MAX_STOPS} strings, each of 1 to ${MAX_STOP_LENGTH} characters`)
}

/** Forms and gRPC inputs may contain a JSON list. */
function stopList(value: unknown): unknown[] {
  if (value === undefined || value === null) return []
  if (Array.isArray(value)) return value
  if (typeof value === 'string' && value.startsWith('["')) {
    try {
      return JSON.parse(value) as unknown[]
    } catch {
      return [value]
    }
  }
  return [value]
}

function bad(message: string): PredictionException {
  return new PredictionException(message, 400)
}

/**
 * The named values of a request: a JSON object or plain text (the prompt) as body or as part `data`, and all
 * other parts by name.
 * @throws PredictionException 400
 */
function readFields(request: HandlerRequest): Fields {
  const { data, body, ...parts } = request
  const fields = Object.fromEntries(Object.entries(parts).map(([name, value]) => [name, decoded(value)]))
  const main = decoded(data ?? body)
  if (main === undefined || main === '') return fields
  if (typeof main === 'string') return { ...fields, ...fromText(main) }
  if (typeof main === 'object' && main !== null && !Array.isArray(main)) return { ...fields, ...main }
  throw new PredictionException('The body must be a JSON object or a string', 400)
}

/** The same with the nearest numbers in place of bigints: templates and grammars take no others. */
export function withNumbers<T>(request: T): T {
  const json = JSON.stringify(request, (_key, each: unknown) =>
    typeof each === 'bigint' ? Number(each) : each,
  )
  return JSON.parse(json) as T
}

function decoded(value: unknown): unknown {
  if (!(value instanceof Uint8Array)) return value
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(value)
  } catch {
    throw new PredictionException('The request must be UTF-8 text', 400)
  }
}

function fromText(text: string): Fields {
  if (!text.trimStart().startsWith('{')) return { prompt: text }
  try {
    return JSON.parse(text) as Fields
  } catch {
    const hint = 'for a prompt that begins with { send {"prompt": "..."}'
    throw new PredictionException(`A body that begins with { must be valid JSON; ${hint}`, 400)
  }
}
