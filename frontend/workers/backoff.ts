/** Seconds before the n-th start in a row: TorchServe's row (spec 4.8) after one quick first try. */
const STEPS = [0.1, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597]

/** A worker that has been ready for this long has recovered: the next death starts the row anew. */
const RECOVERED_MS = 10_000

/** When to start a worker again, and when to give up. Times are performance.now() milliseconds. */
export class Backoff {
  readonly #limitMs: number
  #attempts = 0
  #recoveringSince: number | undefined
  #readySince: number | undefined

  /** `maxRetryTimeoutInSec` 0 means no retries. */
  constructor(maxRetryTimeoutInSec: number) {
    this.#limitMs = maxRetryTimeoutInSec * 1000
  }

  ready(now: number): void {
    this.#readySince = now
  }

  /** Milliseconds to wait after a death, or undefined to give up. */
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
