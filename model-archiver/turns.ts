import { ServeError } from '../common/errors.ts'

/** A semaphore: admits a fixed number at once, the others in order of arrival. */
export class Turns {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** Waits for a turn, which must be given back. @throws ServeError SHUTTING_DOWN when `signal` aborts */
  async take(signal?: AbortSignal): Promise<void> {
    if (signal?.aborted === true) throw calledOff()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await new Promise<void>((resolve, reject) => {
      const enter = (): void => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      const leave = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(enter), 1)
        reject(calledOff())
      }
      this.#waiting.push(enter)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }

  give(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free += 1
    else next()
  }
}

/** The error of a wait that the server's shutdown cancels. */
export function calledOff(): ServeError {
  return new ServeError('SHUTTING_DOWN', 'The server is shutting down')
}
