/** How much of something may happen: up to one second's worth at once, then at its rate. */
export class RateBucket {
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
