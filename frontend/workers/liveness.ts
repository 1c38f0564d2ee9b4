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
