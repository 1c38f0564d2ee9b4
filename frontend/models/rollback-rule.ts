import type { RollbackSettings } from '../config/traffic-settings.ts'

/** Parts of a window. The oldest is forgotten whole, so the window looks back 95 to 100 % of its length. */
const PARTS = 20

/** Decides from the requests of the last seconds whether a version fails too often. Its memory is bounded. */
export class RollbackRule {
  readonly #settings: RollbackSettings
  readonly #partMs: number
  readonly #requests = new Uint32Array(PARTS)
  readonly #errors = new Uint32Array(PARTS)
  /** Number of the part that counts now; part n has the place n modulo PARTS. */
  #part = 0

  constructor(settings: RollbackSettings) {
    this.#settings = settings
    this.#partMs = (settings.windowSeconds * 1000) / PARTS
  }

  /**
   * Counts a request that has ended.
   * @param now milliseconds of a clock that never goes back
   * @returns why the version has to go; undefined: it may stay
   */
  ended(isError: boolean, now: number): string | undefined {
    const place = this.#placeAt(now)
    this.#requests[place]! += 1
    if (isError) this.#errors[place]! += 1
    return this.#judge()
  }

  /**
   * A request that was counted without error turns out to be one.
   * @returns as `ended`
   */
  failedLate(now: number): string | undefined {
    this.#errors[this.#placeAt(now)]! += 1
    return this.#judge()
  }

  #judge(): string | undefined {
    const { maxErrorPercent, minRequests, windowSeconds } = this.#settings
    const requests = sum(this.#requests)
    // A late error may outlast its request in the window.
    const errors = Math.min(requests, sum(this.#errors))
    if (requests < minRequests || errors * 100 <= maxErrorPercent * requests) return undefined
    const percent = Math.round((errors / requests) * 1000) / 10
    return `${errors} of ${requests} requests failed within ${windowSeconds} s: ${percent} %, more than ${maxErrorPercent} %`
  }

  /** Forgets what has left the window. */
  #placeAt(now: number): number {
    const part = Math.floor(now / this.#partMs)
    const passed = Math.min(PARTS, part - this.#part)
    for (let back = 0; back < passed; back += 1) {
      this.#requests[(part - back) % PARTS] = 0
      this.#errors[(part - back) % PARTS] = 0
    }
    this.#part = Math.max(part, this.#part)
    return this.#part % PARTS
  }
}

function sum(counts: Uint32Array): number {
  let total = 0
  for (const count of counts) total += count
  return total
}
