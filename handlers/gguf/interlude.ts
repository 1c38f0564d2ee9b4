/**
 * Pauses generations between two tokens while another operation needs the context. The runtime releases the
 * context only when no sequence requests a token, so without a pause the operation (freeing a sequence) would
 * wait until all other sequences end.
 */
export class Interlude {
  #running = 0
  #over: Promise<void> | undefined
  #end: (() => void) | undefined

  /** Awaited by generations before the next token; undefined: no pause. */
  get over(): Promise<void> | undefined {
    return this.#over
  }

  async during(work: () => Promise<void>): Promise<void> {
    this.#over ??= new Promise((resolve) => (this.#end = resolve))
    this.#running += 1
    try {
      await work()
    } finally {
      this.#running -= 1
      if (this.#running === 0) {
        this.#end?.()
        this.#over = undefined
      }
    }
  }
}
