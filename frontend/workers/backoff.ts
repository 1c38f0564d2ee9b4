/**
 * Seconds before the n-th restart in a row: TorchServe's series (WorkerThread.java), after one quick first
 * attempt.
 */
const STEPS = [0.1, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597]

/**
 * A worker that was ready for this many milliseconds has recovered, so its next death starts the series
 * again.
 */
const RECOVERED_MS = 10_000

/** Decides when to restart a worker and when to give up. Times are milliseconds of performance.now(). */
export class Backoff {
  readonly #limitMs: number
  #attempts = 0
  #recoveringSince: number | undefined
  #readySince: number | undefined

  /** `maxRetryTimeoutInSec` 0 means no restarts. */
  constructor(maxRetryTimeoutInSec: number) {
    this.#limitMs = maxRetryTimeoutInSec * 1000
  }

  ready(now: number): void {
    this.#readySince = now
  }

  /** Milliseconds to wait after a death; undefined: give up. */
  next(now: number): number | undefined {
    if (this.#readySince !== undefined && now - this.#readySince >= RECOVERED_MS) {
      this.#attempts = 0
      this.#recoveringSince = undefined
    }
    this.#readySince = undefined
    this.#recoveringSince ??= now
    if (this.#limitMs === 0 || now - this.#recoveringSince >= this.#limitMs) return undefined
    const seconds = STEPS[Math.min(this.#attempts, STEPS.length - 1)] ?? 1
    this.#attempts += 1
    return seconds * 1000
  }
}
