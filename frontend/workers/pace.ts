/** Milliseconds of work that may wait at a worker. A batch that takes longer gives back what waits. */
export const WORK_AHEAD_MS = 4
/** By how much of the difference a shorter batch lowers what is expected. */
const EASING = 1 / 8

/**
 * How long the batches of one worker take, and so how many may wait at it. A batch that takes longer than
 * expected counts at once, shorter ones slowly: work must not wait behind a long batch.
 */
export class Pace {
  readonly #most: number
  #begun = 0
  #expected = WORK_AHEAD_MS

  /** `most` batches may wait, however short they are. */
  constructor(most: number) {
    this.#most = most
  }

  /** A batch begins at this time of performance.now(). */
  begin(now: number): void {
    this.#begun = now
  }

  /** It has ended. */
  end(now: number): void {
    const took = now - this.#begun
    this.#expected = took > this.#expected ? took : this.#expected + (took - this.#expected) * EASING
  }

  /** Whether the running batch takes longer than anything may wait for it. */
  isSlow(now: number): boolean {
    return now - this.#begun >= WORK_AHEAD_MS
  }

  /** How many batches may wait behind the running one. */
  allowance(now: number): number {
    if (this.isSlow(now)) return 0
    return Math.min(this.#most, Math.floor(WORK_AHEAD_MS / this.#expected))
  }
}
