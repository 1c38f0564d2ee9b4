/** An answer that takes longer counts as one of this length, so that one pause does not count for long. */
const LONGEST_MS = 1
/** The part of an answer in the average. */
const EASING = 1 / 8

/**
 * Busy polling of a worker's socket: while answers are short, the event loop asks for the next one again and
 * again instead of sleeping. To sleep and to be woken takes longer than many handlers do. Long answers end it
 * by themselves, because nothing is gained there.
 */
export class BusyPoll {
  readonly #maxMs: number
  /** The average time from a message to the next answer. */
  #expectedMs = LONGEST_MS
  /** When the first message left that nothing has answered; undefined: there is none. */
  #sentAt: number | undefined
  #until = 0
  #scheduled = false

  /** @param maxMs after each message; answers that take longer on average are not waited for; 0: none is */
  constructor(maxMs: number) {
    this.#maxMs = maxMs
  }

  /** Messages have left. */
  sent(): void {
    if (this.#maxMs === 0) return
    const now = performance.now()
    this.#sentAt ??= now
    if (this.#expectedMs >= this.#maxMs) return
    this.#until = now + this.#maxMs
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#poll)
  }

  /** Something arrived, at this time of performance.now(). */
  received(now: number): void {
    if (this.#sentAt === undefined) return
    const took = Math.min(LONGEST_MS, now - this.#sentAt)
    this.#expectedMs += (took - this.#expectedMs) * EASING
    this.#sentAt = undefined
    this.#until = 0
  }

  readonly #poll = (): void => {
    if (performance.now() < this.#until) setImmediate(this.#poll)
    else this.#scheduled = false
  }
}
