import { randomInt } from 'node:crypto'
import { PredictionException, type HandlerRequest } from 'torchserve-ts'
import { readFields } from './fields.ts'

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

/** Defaults for requests, from model-config.yaml. */
export interface Defaults {
  maxTokens: number
  temperature: number
  topP: number
}

type Fields = Record<string, unknown>

const NAMES = [
  ...(['prompt', 'max_tokens', 'temperature', 'top_p', 'seed', 'stop', 'parse_special', 'stream'] as const),
]
type Name = (typeof NAMES)[number]
const MAX_SEED = 2 ** 32 - 1
const MAX_STOPS = 16
const MAX_STOP_LENGTH = 256

/** @throws PredictionException 400 that names the parameter */
export function readCompletion(request: HandlerRequest, defaults: Defaults): Completion {
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
