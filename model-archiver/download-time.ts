import { ServeError } from '../common/errors.ts'
import { startTimer } from '../common/timer.ts'

const TIMEOUT_MS = 3_600_000

/** Aborts when the download's time is over or its caller cancels it. */
export class DownloadTime {
  readonly #controller = new AbortController()
  readonly #timer: NodeJS.Timeout
  readonly #calledOff: AbortSignal | undefined

  /**
   * @param timeoutMs milliseconds
   * @param failed makes the error for the end of the time
   */
  constructor(
    { timeoutMs = TIMEOUT_MS, signal }: { timeoutMs?: number; signal?: AbortSignal },
    failed: (why: string) => ServeError,
  ) {
    this.#timer = startTimer(() => {
      this.#controller.abort(failed(`it took longer than ${timeoutMs / 1000} s`))
    }, timeoutMs)
    this.#calledOff = signal
    signal?.addEventListener('abort', this.#onCalledOff)
    if (signal?.aborted) this.#onCalledOff()
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Why it ended the download; undefined if it did not. */
  get reason(): ServeError | undefined {
    return this.signal.aborted ? (this.signal.reason as ServeError) : undefined
  }

  clear(): void {
    clearTimeout(this.#timer)
    this.#calledOff?.removeEventListener('abort', this.#onCalledOff)
  }

  readonly #onCalledOff = (): void => {
    this.#controller.abort(new ServeError('SHUTTING_DOWN', 'The server is shutting down'))
  }
}
