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
