/**
 * Limits how often something happens: up to `burst` times at once, then once every `everyMs` milliseconds.
 */
export class Allowance {
  readonly #everyMs: number
  readonly #savedMs: number
  /** The allowance is used up to this time (performance.now()). */
  #used = -Infinity

  constructor(everyMs: number, burst: number) {
    this.#everyMs = everyMs
    this.#savedMs = everyMs * burst
  }

  /** Milliseconds until it may happen again; 0: now. */
  get wait(): number {
    return Math.max(0, this.#used + this.#everyMs - performance.now())
  }

  /** Records that it happened. */
  use(): void {
    this.#used = Math.max(this.#used, performance.now() - this.#savedMs) + this.#everyMs
  }
}
