import type { InputFeed, InputPort } from '../../jobs/job-request.ts'

/** Messages that may be with the worker before its handler has asked for them. */
const MAX_UNTAKEN = 4

/** The further messages of a call on their way to the worker that has its request. */
export class CallFeed implements InputFeed {
  readonly #onRoom: () => void
  #port: InputPort | undefined
  #waiting: Buffer[] = []
  /** Inputs at the worker, less those that the handler has asked for. */
  #untaken = 0
  #ended = false

  /** `onRoom` is called when `push` may be called again after it returned false. */
  constructor(onRoom: () => void) {
    this.#onRoom = onRoom
  }

  /** False: read no further message for now. */
  push(message: Buffer): boolean {
    this.#waiting.push(message)
    this.#pass()
    return this.#hasRoom
  }

  end(): void {
    this.#ended = true
    this.#pass()
  }

  connect(port: InputPort): void {
    this.#port = port
    this.#pass()
    if (this.#hasRoom) this.#onRoom()
  }

  taken(inputs: number): void {
    this.#untaken -= inputs
    this.#pass()
    if (this.#hasRoom) this.#onRoom()
  }

  get waitsForClient(): boolean {
    return this.#untaken < 0 && !this.#ended
  }

  get #hasRoom(): boolean {
    return this.#waiting.length === 0
  }

  #pass(): void {
    if (this.#port === undefined) return
    while (this.#waiting.length > 0 && this.#untaken < MAX_UNTAKEN) {
      this.#untaken += 1
      this.#port.input(this.#waiting.shift())
    }
    if (!this.#ended || this.#waiting.length > 0) return
    this.#port.input(undefined)
    this.#port = undefined
  }
}
