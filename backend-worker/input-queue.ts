/**
 * The further inputs of a request whose client sends several. Inputs wait here until the handler asks for
 * them.
 */
export class InputQueue implements AsyncIterable<Uint8Array> {
  readonly #onTaken: () => void
  readonly #waiting: Uint8Array[] = []
  #ended = false
  #error: Error | undefined
  #wake: (() => void) | undefined

  /** `onTaken` is called for each input that the handler asks for, before it is there. */
  constructor(onTaken: () => void) {
    this.#onTaken = onTaken
  }

  push(data: Uint8Array): void {
    // A copy, because the message shares its memory with others.
    this.#waiting.push(Uint8Array.from(data))
    this.#wakeUp()
  }

  /** No further input follows. */
  end(): void {
    this.#ended = true
    this.#wakeUp()
  }

  /** The request was cancelled: the next read throws the reason. */
  fail(error: Error): void {
    this.#error ??= error
    this.#waiting.length = 0
    this.#wakeUp()
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array, void, undefined> {
    for (;;) {
      if (!this.#isOver) this.#onTaken()
      while (this.#waiting.length === 0 && !this.#isOver)
        await new Promise<void>((resolve) => {
          this.#wake = resolve
        })
      if (this.#error !== undefined) throw this.#error
      const next = this.#waiting.shift()
      if (next === undefined) return
      yield next
    }
  }

  /** Whether no input is left, and none will come. */
  get #isOver(): boolean {
    return this.#waiting.length === 0 && (this.#ended || this.#error !== undefined)
  }

  #wakeUp(): void {
    this.#wake?.()
    this.#wake = undefined
  }
}
