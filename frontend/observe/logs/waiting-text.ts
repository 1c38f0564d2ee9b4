/** Characters that are kept as a string, at most. */
const MAX_TEXT = 8192

const NO_BYTES = Buffer.alloc(0)

/**
 * Text that waits to be written. It is kept as bytes: a string that grew from many pieces consists of them
 * until it is read, and the garbage collector copies each. Under load that was nearly half of its work.
 */
export class WaitingText {
  #pieces: Buffer[] = []
  #bytes = 0
  #text = ''

  /** Bytes, or characters of what came last. */
  get size(): number {
    return this.#bytes + this.#text.length
  }

  add(text: string): void {
    this.#text += text
    if (this.#text.length >= MAX_TEXT) this.#convert()
  }

  /** Returns what waits, in UTF-8; nothing waits then. */
  take(): Buffer {
    this.#convert()
    const [only, ...others] = this.#pieces
    const bytes = others.length === 0 ? (only ?? NO_BYTES) : Buffer.concat(this.#pieces, this.#bytes)
    this.#pieces = []
    this.#bytes = 0
    return bytes
  }

  #convert(): void {
    if (this.#text === '') return
    const piece = Buffer.from(this.#text)
    this.#text = ''
    this.#pieces.push(piece)
    this.#bytes += piece.length
  }
}
