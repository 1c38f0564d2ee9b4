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

/** Milliseconds between two pings. */
const INTERVAL_MS = 5000

export interface LivenessProbe {
  /**
   * Whether the worker is idle. The silence of a busy worker is judged by the time limits of its requests.
   */
  idle(): boolean
  ping(nonce: number): void
  /** An idle worker has not answered within the limit: its event loop hangs. */
  onSilent(): void
}

/** Detects workers that hang while they are idle. */
export class Liveness {
  readonly #limitMs: number
  readonly #probe: LivenessProbe
  #timer: NodeJS.Timeout | undefined
  #nonce = 0
  #askedAt: number | undefined

  constructor(limitMs: number, probe: LivenessProbe) {
    this.#limitMs = limitMs
    this.#probe = probe
  }

  start(): void {
    this.stop()
    this.#timer = setInterval(() => {
      this.#tick(performance.now())
    }, INTERVAL_MS)
    this.#timer.unref()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#askedAt = undefined
  }

  answered(nonce: number): void {
    if (nonce === this.#nonce) this.#askedAt = undefined
  }

  #tick(now: number): void {
    if (!this.#probe.idle()) {
      this.#askedAt = undefined
    } else if (this.#askedAt === undefined) {
      this.#askedAt = now
      this.#probe.ping(++this.#nonce)
    } else if (now - this.#askedAt > this.#limitMs) {
      this.#probe.onSilent()
    }
  }
}

/**
 * A promise that is settled from outside, once; later attempts have no effect. Its rejection may stay
 * unhandled.
 */
export class Deferred {
  readonly promise: Promise<void>
  settled = false
  #resolve!: () => void
  #reject!: (error: Error) => void

  constructor() {
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.promise.catch(() => undefined)
  }

  resolve(): void {
    this.settled = true
    this.#resolve()
  }

  reject(error: Error): void {
    this.settled = true
    this.#reject(error)
  }
}
