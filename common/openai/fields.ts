import { ServeError } from '../errors.ts'
import { isObject } from '../json.ts'
import { ownValue } from '../own-keys.ts'

/**
 * Checks of single fields. Null counts as absent, as in the OpenAI API. Each throws ServeError
 * INVALID_ARGUMENT with the field as `param`.
 */
export class Fields {
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #prefix: string

  /** `prefix` precedes the field name in messages: `messages[0].` */
  constructor(fields: Readonly<Record<string, unknown>>, prefix = '') {
    this.#fields = fields
    this.#prefix = prefix
  }

  text(name: string, required = false): void {
    this.#check(name, required, 'must be a non-empty string', (v) => typeof v === 'string' && v !== '')
  }

  flag(name: string): void {
    this.#check(name, false, 'must be true or false', (v) => typeof v === 'boolean')
  }

  number(name: string, min: number, max: number): void {
    this.#check(name, false, `must be a number from ${min} to ${max}`, (v) => isWithin(v, min, max))
  }

  integer(name: string, min: number, max = Number.MAX_SAFE_INTEGER): void {
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
    this.#check(
      name,
      false,
      `must be a whole number ${range}`,
      (v) => isWithin(v, min, max) && Number.isInteger(v),
    )
  }

  object(name: string, required = false): void {
    this.#check(name, required, 'must be an object', isObject)
  }

  objects(name: string, required = false): void {
    const fits = (v: unknown): boolean => Array.isArray(v) && v.every(isObject) && (!required || v.length > 0)
    this.#check(name, required, `must be a ${required ? 'non-empty ' : ''}list of objects`, fits)
  }

  /** A string, or an array of strings, each of at most so many characters. */
  texts(name: string, max: number, maxLength: number): void {
    const isText = (v: unknown): boolean => typeof v === 'string' && v.length <= maxLength
    const fits = (v: unknown): boolean =>
      isText(v) || (Array.isArray(v) && v.length <= max && v.every(isText))
    const rule = `must be a string or a list of at most ${max} strings, each of at most ${maxLength} characters`
    this.#check(name, false, rule, fits)
  }

  /** The content of a message: a string, or an array of parts. */
  content(name: string): void {
    const isPart = (part: unknown): boolean =>
      isObject(part) &&
      typeof part['type'] === 'string' &&
      (part['type'] !== 'text' || typeof part['text'] === 'string')
    const fits = (v: unknown): boolean => typeof v === 'string' || (Array.isArray(v) && v.every(isPart))
    this.#check(name, false, 'must be a string or a list of parts with a type', fits)
  }

  /** A string, an array of token ids, or an array of these. Returns how many inputs they are. */
  prompts(name: string, max: number): number {
    const value = ownValue(this.#fields, name)
    if (typeof value === 'string' || isTokens(value)) return 1
    const fits = (v: unknown): boolean =>
      Array.isArray(v) &&
      v.length > 0 &&
      v.length <= max &&
      (v.every((text) => typeof text === 'string') || v.every(isTokens))
    this.#check(name, true, `must be a string, token ids, or a list of at most ${max} of these`, fits)
    return (value as unknown[]).length
  }

  refuse(name: string, why: string): never {
    const param = `${this.#prefix}${name}`
    throw new ServeError('INVALID_ARGUMENT', `Invalid ${param}: ${why}`, { param })
  }

  #check(name: string, required: boolean, rule: string, fits: (value: unknown) => boolean): void {
    const value = ownValue(this.#fields, name) ?? undefined
    if (value === undefined ? required : !fits(value)) this.refuse(name, `it ${rule}`)
  }
}

function isWithin(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function isTokens(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((id) => Number.isInteger(id) && (id as number) >= 0)
  )
}
