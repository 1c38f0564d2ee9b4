import type { Context } from 'koa'
import { ServeError } from '../../../common/errors.ts'
import { parseBody } from '../../../common/exact-json.ts'
import { isObject, ownValue } from '../../../common/json.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { closest } from '../../../common/names.ts'
import { readBody } from '../../edge/http/body.ts'
import { mediaType } from '../../edge/http/request-head.ts'
import { callOf } from './rest-koa.ts'

/**
 * Parameters by name, as strings. A value that cannot be used counts as absent, and a boolean is false unless
 * it is `true`, as in TorchServe (NettyUtils.getIntParameter, Boolean.parseBoolean), whose own tests send
 * such values. Unlike there, `warnings` tells.
 */
export class Params {
  /** What was ignored, as sentences. */
  readonly warnings: string[] = []
  readonly #get: (name: string) => string | undefined
  readonly #names: () => Iterable<string>
  readonly #asked = new Set<string>()

  constructor(get: (name: string) => string | undefined, names: () => Iterable<string>) {
    this.#get = get
    this.#names = names
  }

  text(name: string): string | undefined {
    this.#asked.add(name)
    return this.#get(name)
  }

  /** A whole number of 32 bits. */
  integer(name: string): number | undefined {
    return this.#integer(name, INT_MIN)
  }

  positive(name: string): number | undefined {
    return this.#integer(name, 1)
  }

  notNegative(name: string): number | undefined {
    return this.#integer(name, 0)
  }

  flag(name: string): boolean | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = text.toLowerCase()
    if (value !== 'true' && value !== 'false')
      this.#warn(`${name} must be true or false, found ${brief(text)}; it counts as false`)
    return value === 'true'
  }

  /**
   * Warns about names that nobody has asked for.
   * @param inert parameters of TorchServe that have no effect
   * @throws ServeError INVALID_ARGUMENT for one that looks misspelt
   */
  checkNames(...inert: string[]): void {
    const known = [...this.#asked, ...inert]
    let unknown = 0
    for (const name of new Set(this.#names())) {
      if (this.#asked.has(name)) continue
      if (inert.includes(name)) {
        this.#warn(`${name} has no effect`)
        continue
      }
      const meant = closest(name, known)
      if (meant !== undefined) {
        throw new ServeError(
          'INVALID_ARGUMENT',
          `Parameter ${brief(name)} is not known: did you mean ${meant}?`,
        )
      }
      this.#warn(`${brief(name)} is not known; it is ignored`)
      if ((unknown += 1) === MAX_UNKNOWN) return
    }
  }

  #integer(name: string, min: number): number | undefined {
    const text = this.text(name)
    if (text === undefined) return undefined
    const value = /^[+-]?\d+$/.test(text) ? Number(text) : NaN
    if (value >= min && value <= INT_MAX) return value
    this.#warn(
      `${name} must be a whole number from ${min} to ${INT_MAX}, found ${brief(text)}; it is ignored`,
    )
    return undefined
  }

  #warn(what: string): void {
    this.warnings.push(`Parameter ${what}`)
  }
}

/** Unknown names that are told of one request. */
const MAX_UNKNOWN = 10
const INT_MIN = -(2 ** 31)
const INT_MAX = 2 ** 31 - 1

/** The query parameters; the first of several values counts. */
export function queryParams(ctx: Context): Params {
  const query = new URLSearchParams(ctx.querystring)
  return new Params(
    (name) => query.get(name) ?? undefined,
    () => query.keys(),
  )
}

/**
 * The query parameters, or only the JSON body if there is one.
 * @throws ServeError MALFORMED_BODY, INVALID_ARGUMENT
 */
export async function queryOrJsonParams(ctx: Context): Promise<Params> {
  if (mediaType(ctx.req.headers['content-type']) !== 'application/json') return queryParams(ctx)
  const body = await boundedBody(ctx)
  const fields = parseObject(body)
  return new Params(
    (name) => fieldText(name, ownValue(fields, name)),
    () => Object.keys(fields),
  )
}

/**
 * An answer with what was ignored of the parameters, which the log gets too. A list has no place for it.
 */
export function warned(ctx: Context, { warnings }: Params, value: object): object {
  if (warnings.length === 0) return value
  const { log } = callOf(ctx).state
  for (const warning of warnings) log.warn({}, `${ctx.method} ${ctx.path}: ${warning}`)
  return Array.isArray(value) ? value : { ...value, warnings }
}

/** A JSON body, not yet parsed. @throws ServeError PAYLOAD_TOO_LARGE, INVALID_ARGUMENT */
export async function boundedBody(ctx: Context): Promise<Buffer> {
  const call = callOf(ctx)
  const body = await new Promise<Buffer>((resolve, reject) => readBody(call, resolve, reject))
  checkBody(body, call.state.settings.maxRequestElements)
  return body
}

function parseObject(body: Buffer): Record<string, unknown> {
  const value = body.length === 0 ? {} : parseBody(body)
  if (isObject(value)) return value
  throw new ServeError('INVALID_ARGUMENT', 'The body must be a JSON object.')
}

function fieldText(name: string, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  if (
    typeof value === 'string' ||
    typeof value === 'number' ||
    typeof value === 'bigint' ||
    typeof value === 'boolean'
  ) {
    return String(value)
  }
  throw new ServeError('INVALID_ARGUMENT', `Parameter ${name} must be a string, a number or a boolean.`)
}

function brief(text: string): string {
  return text.slice(0, 80)
}
