import { groupOf } from '../../common/addresses.ts'
import { remember } from '../../common/maps.ts'

/** Wrong tokens that an address may send at once. */
const BURST = 10
/** After that, one token is checked in this time. */
const REFILL_MS = 1_000
/**
 * For this time after a right token, an address is not locked out: behind a proxy, one client must not lock
 * out the others.
 */
const TRUST_MS = 3_600_000
const TRUST_STEP_MS = 60_000
/** Addresses that are remembered; the one that failed longest ago is forgotten first. */
const MAX_ADDRESSES = 10_000

interface Failures {
  /** Wrong tokens that are left. */
  left: number
  /** When `left` was right, in milliseconds. */
  at: number
}

/** Slows down clients that guess tokens, by address (IPv6: by /64 network). Its memory is bounded. */
export class FailureLimiter {
  readonly #now: () => number
  readonly #failures = new Map<string, Failures>()
  readonly #trusted = new Map<string, number>()

  constructor(now: () => number) {
    this.#now = now
  }

  /** Addresses that are remembered. */
  get size(): number {
    return this.#failures.size + this.#trusted.size
  }

  /** Whether a token from there is checked. */
  admits(address: string): boolean {
    if (this.#failures.size === 0) return true
    const group = groupOf(address)
    const failures = this.#failures.get(group)
    if (failures === undefined || this.#left(failures) >= 1) return true
    return this.#now() - (this.#trusted.get(group) ?? -Infinity) < TRUST_MS
  }

  failed(address: string): void {
    const group = groupOf(address)
    const failures = this.#failures.get(group)
    const left = failures === undefined ? BURST : this.#left(failures)
    remember(this.#failures, MAX_ADDRESSES, group, { left: Math.max(0, left - 1), at: this.#now() })
  }

  passed(address: string): void {
    const now = this.#now()
    const group = groupOf(address)
    if (now - (this.#trusted.get(group) ?? -Infinity) >= TRUST_STEP_MS)
      remember(this.#trusted, MAX_ADDRESSES, group, now)
  }

  #left({ left, at }: Failures): number {
    return Math.min(BURST, left + (this.#now() - at) / REFILL_MS)
  }
}
