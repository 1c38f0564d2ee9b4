import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { labelText } from './sample.ts'

/**
 * Why a request was refused before anything looked at what it asks: it has no token, its token is not
 * accepted (unknown, expired, without the right), or its sender is over a limit.
 */
export type RefusalReason = 'no_token' | 'not_accepted' | 'rate_limit'

/** INVALID_API_KEY: the one of `/token`. */
const TOKEN_CODES: ReadonlySet<ErrorCode> = new Set(['UNAUTHORIZED', 'INVALID_API_KEY'])

/** Connections that share a limit, and how many were refused since the start. */
export interface RefusingPool {
  /** What they are for. */
  readonly name: string
  readonly refused: number
}

/** Counts what the server turns away at its door, whatever the model. */
export class Refusals {
  readonly #requests = new Map<RefusalReason, number>([
    ['no_token', 0],
    ['not_accepted', 0],
    ['rate_limit', 0],
  ])
  readonly #pools: RefusingPool[] = []

  /** Counts a refused request. Errors with other codes than that of a token or of a limit do not count. */
  count({ code }: ServeError, authorization: string | undefined): void {
    if (code === 'RATE_LIMITED') this.#add('rate_limit')
    else if (TOKEN_CODES.has(code)) this.#add(authorization === undefined ? 'no_token' : 'not_accepted')
  }

  /** From now on the refused connections of this pool are on the page. */
  watch(pool: RefusingPool): void {
    this.#pools.push(pool)
  }

  /** By labels: see `labelText`. */
  *requests(): Iterable<[string, number]> {
    for (const [reason, count] of this.#requests) yield [labelText(['reason'], [reason]), count]
  }

  *connections(): Iterable<[string, number]> {
    for (const { name, refused } of this.#pools) yield [labelText(['pool'], [name]), refused]
  }

  #add(reason: RefusalReason): void {
    this.#requests.set(reason, this.#requests.get(reason)! + 1)
  }
}
