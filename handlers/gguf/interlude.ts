/**
 * Holds generations back between two tokens while something needs the context to itself. The runtime lets go of the context only when no sequence asks for a token, so what waits
 * for it (freeing a sequence) would wait for as long as any other sequence goes on.
 */
export class Interlude {
  #running = 0
  #over: Promise<void> | undefined
  #end: (() => void) | undefined

  /** What a generation waits for before it asks for its next token; undefined: nothing. */
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
