/** Lets something happen at once while it is seldom, and at a steady pace when it is not: `burst` times, then once every `everyMs`. */
export class Allowance {
  readonly #everyMs: number
  readonly #savedMs: number
  /** Time is used up to here. */
  #used = -Infinity

  constructor(everyMs: number, burst: number) {
    this.#everyMs = everyMs
    this.#savedMs = everyMs * burst
  }

  /** Milliseconds until it may happen; 0: now. */
  get wait(): number {
    return Math.max(0, this.#used + this.#everyMs - performance.now())
  }

  /** It happened. */
  use(): void {
    this.#used = Math.max(this.#used, performance.now() - this.#savedMs) + this.#everyMs
  }
}
