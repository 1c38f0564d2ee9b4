/**
 * Seconds before the n-th start in a row that served nobody: the series of TorchServe (WorkerThread.java),
 * after one quick first attempt.
 */
const STEPS = [0.1, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233, 377, 610, 987, 1597]

/** A worker that was ready for this many milliseconds has recovered. */
const RECOVERED_MS = 10_000

/** Milliseconds between two attempts that the machine thwarts, at most: it may be well again at any time. */
const MACHINE_MS = 30_000

/** How a start of a worker ended. */
export interface StartEnd {
  /** It answered a request. */
  readonly answered: boolean
  /** The machine kept it from starting: no descriptors, no room, no memory. */
  readonly byMachine: boolean
}

/**
 * Decides when to restart a worker and when to give up. A start that answered a request, or was ready for
 * RECOVERED_MS, begins the series anew. Times are milliseconds of performance.now().
 */
export class Backoff {
  readonly #limitMs: number
  #idleStarts = 0
  #recoveringSince: number | undefined
  #readySince: number | undefined

  /** `maxRetryTimeoutInSec` 0 means no restarts. */
  constructor(maxRetryTimeoutInSec: number) {
    this.#limitMs = maxRetryTimeoutInSec * 1000
  }

  /** Starts in a row that neither answered nor recovered. */
  get idleStarts(): number {
    return this.#idleStarts
  }

  ready(now: number): void {
    this.#readySince = now
  }

  /** Milliseconds to wait after the end of a start; undefined: give up. */
  next(now: number, { answered, byMachine }: StartEnd): number | undefined {
    const recovered = this.#readySince !== undefined && now - this.#readySince >= RECOVERED_MS
    this.#readySince = undefined
    if (answered || recovered) this.#idleStarts = 0
    // The handler has all of its time when the machine is well again.
    if (answered || recovered || byMachine) this.#recoveringSince = undefined
    const seconds = STEPS[Math.min(this.#idleStarts, STEPS.length - 1)] ?? 1
    this.#idleStarts += 1
    if (byMachine) return Math.min(seconds * 1000, MACHINE_MS)
    this.#recoveringSince ??= now
    if (this.#limitMs === 0 || now - this.#recoveringSince >= this.#limitMs) return undefined
    return seconds * 1000
  }
}
