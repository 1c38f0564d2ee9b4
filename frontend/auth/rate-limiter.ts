import type { Principal, RateLimits } from './principal.ts'
import { RateAccount, type Metered } from './rate-account.ts'
import type { Settings } from '../config/settings.ts'

/** Callers that are remembered; the one that was idle longest is forgotten first. */
const MAX_ACCOUNTS = 10_000
/** Accounts with open requests that are passed over in the search for one to forget. */
const MAX_PASSED_OVER = 16

type Caller = Pick<Principal, 'name' | 'kind' | 'limits'>

export interface RateLimiterOptions {
  /** Of each caller with a key, token or certificate, where its own entry says nothing. */
  readonly key: RateLimits
  /** Milliseconds of a clock that never goes back. Default: performance.now. */
  readonly now?: () => number
}

/** Bytes of a request and its response so far. */
export interface ByteCount {
  readonly bytes: number
}

/** Limits what each key may use; all listeners share one. Its memory is bounded. */
export class RateLimiter {
  readonly #now: () => number
  readonly #key: RateLimits
  /** Limits by caller's own entry: one object for the same entry, so that an account sees a change. */
  readonly #merged = new WeakMap<RateLimits, RateLimits>()
  readonly #callers = new Map<string, RateAccount>()

  constructor({ key, now = () => performance.now() }: RateLimiterOptions) {
    this.#key = key
    this.#now = now
  }

  /** Accounts that are remembered. */
  get size(): number {
    return this.#callers.size
  }

  /**
   * Counts a request against the limits of its caller; undefined: it has none.
   * @throws ServeError RATE_LIMITED
   */
  visit(caller: Caller, count: ByteCount): Visit | undefined {
    const limits = this.#limitsOf(caller)
    if (caller.kind === 'anonymous' || !isLimit(limits)) return undefined
    const account = this.#account(`${caller.kind}:${caller.name}`, limits)
    account.check(this.#now())
    return new Visit(account, count, this.#now)
  }

  #limitsOf({ limits }: Caller): RateLimits {
    if (limits === undefined) return this.#key
    let merged = this.#merged.get(limits)
    if (merged === undefined) {
      const { requestsPerSecond, concurrentStreams, bytesPerSecond } = limits
      merged = {
        requestsPerSecond: requestsPerSecond ?? this.#key.requestsPerSecond,
        concurrentStreams: concurrentStreams ?? this.#key.concurrentStreams,
        bytesPerSecond: bytesPerSecond ?? this.#key.bytesPerSecond,
      }
      this.#merged.set(limits, merged)
    }
    return merged
  }

  /** An account that was found becomes the newest. */
  #account(id: string, limits: RateLimits): RateAccount {
    const accounts = this.#callers
    let account = accounts.get(id)
    if (account === undefined) {
      if (accounts.size >= MAX_ACCOUNTS) forgetOne(accounts)
      account = new RateAccount()
    } else {
      accounts.delete(id)
    }
    accounts.set(id, account)
    account.limit(limits, this.#now())
    return account
  }
}

/** What one request uses of the limits of its caller. */
export class Visit implements Metered {
  readonly #account: RateAccount
  readonly #count: ByteCount
  readonly #now: () => number
  #settled = 0
  #over = false

  constructor(account: RateAccount, count: ByteCount, now: () => number) {
    this.#account = account
    this.#count = count
    this.#now = now
    account.enter(this, now())
  }

  /** One more request within this one, as a message of a stream is. @throws ServeError RATE_LIMITED */
  another(): void {
    this.#account.another(this.#now())
  }

  settle(): void {
    const { bytes } = this.#count
    const moved = bytes - this.#settled
    this.#settled = bytes
    if (moved !== 0) this.#account.spendBytes(moved, this.#now())
  }

  /** The request is over. */
  end(): void {
    if (this.#over) return
    this.#over = true
    this.settle()
    this.#account.leave(this)
  }

  /** What OpenAI's clients read of what is left. */
  headers(): string[] {
    return this.#account.headers(this.#now())
  }
}

function isLimit(limits: RateLimits): boolean {
  const { requestsPerSecond = 0, concurrentStreams = 0, bytesPerSecond = 0 } = limits
  return requestsPerSecond > 0 || concurrentStreams > 0 || bytesPerSecond > 0
}

/** The one that was used longest ago, unless it has open requests, of which there are few. */
function forgetOne(accounts: Map<string, RateAccount>): void {
  let passedOver = 0
  for (const [id, account] of accounts) {
    accounts.delete(id)
    if (!account.isOpen || ++passedOver > MAX_PASSED_OVER) return
    accounts.set(id, account)
  }
}

/** Undefined: nothing is limited. Keys of a file may have limits, now or after a change. */
export function limiterOf(settings: Settings): RateLimiter | undefined {
  const key = {
    requestsPerSecond: settings.keyRequestsPerSecond,
    concurrentStreams: settings.keyConcurrentStreams,
    bytesPerSecond: settings.keyBytesPerSecond,
  }
  return isLimit(key) || settings.apiKeysFile !== undefined ? new RateLimiter({ key }) : undefined
}
