/**
 * Waits for a time or until the signal aborts. One object is timer, listener and promise, because a thousand
 * idle streams keep a thousand of them.
 */
export class Pause {
  readonly #signal: AbortSignal
  readonly #timer: NodeJS.Timeout
  readonly #wake: () => void

  private constructor(ms: number, signal: AbortSignal, wake: () => void) {
    this.#signal = signal
    this.#wake = wake
    // eslint-disable-next-line no-restricted-syntax -- `delay` has a bound of its own (parameters.ts)
    this.#timer = setTimeout(Pause.#end, ms, this)
    signal.addEventListener('abort', this)
  }

  static for(ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => new Pause(ms, signal, resolve))
  }

  /** The signal aborted. */
  handleEvent(): void {
    clearTimeout(this.#timer)
    Pause.#end(this)
  }

  static #end(pause: Pause): void {
    pause.#signal.removeEventListener('abort', pause)
    pause.#wake()
  }
}
