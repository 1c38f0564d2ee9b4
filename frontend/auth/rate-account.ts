import { ServeError } from '../../common/errors.ts'
import type { RateLimits } from './principal.ts'

/** An open request whose bytes are counted. */
export interface Metered {
  /** Charges the bytes that have moved since the last call. */
  settle(): void
}

/** Milliseconds after which a request may be tried again that had too many others beside it. */
const AGAIN_MS = 1_000
/** Bytes of open requests are counted at most this often, in milliseconds. */
const SETTLE_MS = 50

/** What one key has used of its limits. */
export class RateAccount {
  #limits: RateLimits = {}
  #requests: RateBucket | undefined
  #bytes: RateBucket | undefined
  #open = 0
  /** Those whose bytes count. */
  readonly #metered = new Set<Metered>()
  #settledAt = -Infinity

  get isOpen(): boolean {
    return this.#open > 0
  }

  /** Takes limits that may have changed; those that have not keep what was used of them. */
  limit(limits: RateLimits, now: number): void {
    if (limits === this.#limits) return
    this.#limits = limits
    this.#requests = bucketOf(this.#requests, limits.requestsPerSecond, now)
    this.#bytes = bucketOf(this.#bytes, limits.bytesPerSecond, now)
  }

  /**
   * Whether another request may start. Takes nothing.
   * @throws ServeError RATE_LIMITED with the time after which it may
   */
  check(now: number): void {
    const { concurrentStreams = 0 } = this.#limits
    if (this.#requests !== undefined) {
      const wait = this.#requests.wait(1, now)
      if (wait > 0) throw this.#refusal(`start ${this.#requests.perSecond} requests each second`, wait)
    }
    if (concurrentStreams > 0 && this.#open >= concurrentStreams)
      throw this.#refusal(`have ${concurrentStreams} open requests at one time`, AGAIN_MS)
    if (this.#bytes === undefined) return
    this.#settle(now)
    const wait = this.#bytes.wait(1, now)
    if (wait > 0) throw this.#refusal(`send and receive ${this.#bytes.perSecond} bytes each second`, wait)
  }

  enter(request: Metered, now: number): void {
    this.#open++
    this.#requests?.spend(1, now)
    this.#metered.add(request)
  }

  leave(request: Metered): void {
    this.#open--
    this.#metered.delete(request)
  }

  spendBytes(bytes: number, now: number): void {
    this.#bytes?.spend(bytes, now)
  }

  /** One more request within an open one. @throws ServeError RATE_LIMITED */
  another(now: number): void {
    if (this.#requests === undefined) return
    const wait = this.#requests.wait(1, now)
    if (wait > 0) throw this.#refusal(`start ${this.#requests.perSecond} requests each second`, wait)
    this.#requests.spend(1, now)
  }

  /** The headers of OpenAI's API that tell a client what is left, flat; none without a limit on requests. */
  headers(now: number): string[] {
    const bucket = this.#requests
    if (bucket === undefined) return []
    const reset = Math.ceil(bucket.untilFull(now)) / 1_000
    return [
      'x-ratelimit-limit-requests',
      String(bucket.perSecond),
      'x-ratelimit-remaining-requests',
      String(Math.max(0, Math.floor(bucket.level(now)))),
      'x-ratelimit-reset-requests',
      `${reset}s`,
    ]
  }

  #settle(now: number): void {
    if (now - this.#settledAt < SETTLE_MS) return
    this.#settledAt = now
    for (const request of this.#metered) request.settle()
  }

  #refusal(what: string, waitMs: number): ServeError {
    const seconds = Math.max(1, Math.ceil(waitMs / 1_000))
    const message = `Too many requests: this key may ${what}; try again in ${seconds} s`
    return new ServeError('RATE_LIMITED', message, { retryAfterMs: Math.ceil(waitMs) })
  }
}

function bucketOf(
  before: RateBucket | undefined,
  perSecond: number | undefined,
  now: number,
): RateBucket | undefined {
  if (perSecond === undefined || perSecond === 0) return undefined
  return before?.perSecond === perSecond ? before : new RateBucket(perSecond, now)
}

/** How much of something may happen: up to one second's worth at once, then at its rate. */
class RateBucket {
  readonly perSecond: number
  readonly #size: number
  #level: number
  /** When `#level` was right, in milliseconds. */
  #at: number

  /** `now`: milliseconds of any clock that never goes back; the same clock in all calls. */
  constructor(perSecond: number, now: number) {
    this.perSecond = perSecond
    this.#size = Math.max(1, perSecond)
    this.#level = this.#size
    this.#at = now
  }

  /** What may happen now; below zero after more was spent than there was. */
  level(now: number): number {
    this.#level = Math.min(this.#size, this.#level + ((now - this.#at) * this.perSecond) / 1_000)
    this.#at = now
    return this.#level
  }

  spend(amount: number, now: number): void {
    this.#level = this.level(now) - amount
  }

  /** Milliseconds until `amount` may happen; 0: now. */
  wait(amount: number, now: number): number {
    return Math.max(0, ((amount - this.level(now)) * 1_000) / this.perSecond)
  }

  /** Milliseconds until everything that was spent is there again. */
  untilFull(now: number): number {
    return this.wait(this.#size, now)
  }
}
