import type { Context } from 'koa'
import { ServeError } from '../../../common/errors.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { ownValue } from '../../../common/own-keys.ts'
import { readBody } from '../../edge/http/body.ts'
import { mediaType } from '../../edge/http/request-headers.ts'
import { exchangeOf } from './rest-koa.ts'

/**
 * Parameters by name, as strings. A number that does not parse or exceeds 32 bits counts as absent, and a
 * boolean is false unless it is `true`, as in TorchServe (NettyUtils.getIntParameter, Boolean.parseBoolean).
 */
class Params {
  readonly #get: (name: string) => string | undefined

  constructor(get: (name: string) => string | undefined) {
    this.#get = get
  }

  text(name: string): string | undefined {
    return this.#get(name)
  }

  integer(name: string): number | undefined {
    const text = this.#get(name)
    if (text === undefined || !/^[+-]?\d+$/.test(text)) return undefined
    const value = Number(text)
    return value >= INT_MIN && value <= INT_MAX ? value : undefined
  }

  /** A value below one counts as absent. */
  positive(name: string): number | undefined {
    return this.#atLeast(1, name)
  }

  notNegative(name: string): number | undefined {
    return this.#atLeast(0, name)
  }

  flag(name: string): boolean | undefined {
    const text = this.#get(name)
    return text === undefined ? undefined : text.toLowerCase() === 'true'
  }

  #atLeast(min: number, name: string): number | undefined {
    const value = this.integer(name)
    return value !== undefined && value >= min ? value : undefined
  }
}

const INT_MIN = -(2 ** 31)
const INT_MAX = 2 ** 31 - 1

/** The query parameters; the first of several values counts. */
export function queryParams(ctx: Context): Params {
  const query = new URLSearchParams(ctx.querystring)
  return new Params((name) => query.get(name) ?? undefined)
}

/**
 * The query parameters, or only the JSON body if there is one.
 * @throws ServeError MALFORMED_BODY, INVALID_ARGUMENT
 */
export async function queryOrJsonParams(ctx: Context): Promise<Params> {
  if (mediaType(ctx.req.headers['content-type']) !== 'application/json') return queryParams(ctx)
  const body = await jsonBody(ctx)
  checkBody(body, exchangeOf(ctx).state.settings.maxRequestElements)
  const fields = parseObject(body.toString())
  return new Params((name) => fieldText(name, ownValue(fields, name)))
}

function jsonBody(ctx: Context): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    readBody(exchangeOf(ctx), (error, body) => {
      if (error === undefined) resolve(body)
      else reject(error)
    })
  })
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text === '' ? '{}' : text)
  } catch (cause) {
    throw new ServeError('MALFORMED_BODY', 'The body is not valid JSON.', { cause })
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ServeError('INVALID_ARGUMENT', 'The body must be a JSON object.')
  }
  return value as Record<string, unknown>
}

function fieldText(name: string, value: unknown): string | undefined {
  if (value === null || value === undefined) return undefined
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean') {
    return String(value)
  }
  throw new ServeError('INVALID_ARGUMENT', `Parameter ${name} must be a string, a number or a boolean.`)
}
