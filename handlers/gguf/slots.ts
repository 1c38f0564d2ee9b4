/** A semaphore: a fixed number of slots, and a queue for those who wait. */
export class Slots {
  #free: number
  readonly #line = new Set<() => void>()

  constructor(count: number) {
    this.#free = count
  }

  /** @throws the signal's reason when it is aborted, also while waiting */
  async take(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted()
    if (this.#free > 0) {
      this.#free -= 1
      return
    }
    await this.#wait(signal)
  }

  giveBack(): void {
    const [next] = this.#line
    if (next === undefined) this.#free += 1
    else next()
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const leave = (): void => {
        this.#line.delete(enter)
        reject(signal.reason as Error)
      }
      const enter = (): void => {
        this.#line.delete(enter)
        signal.removeEventListener('abort', leave)
        resolve()
      }
      this.#line.add(enter)
      signal.addEventListener('abort', leave, { once: true })
    })
  }
}
