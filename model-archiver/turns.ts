import { ServeError } from '../common/errors.ts'

/** Lets so many in at once; the others wait in the order in which they came. */
export class Turns {
  readonly #waiting: (() => void)[] = []
  #free: number

  constructor(count: number) {
    this.#free = count
  }

  /** Whoever has taken a turn must give it back. @throws ServeError SHUTTING_DOWN when `signal` calls the wait off */
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

/** What somebody hears whose wait the end of the server calls off. */
export function calledOff(): ServeError {
  return new ServeError('SHUTTING_DOWN', 'The server is shutting down')
}
