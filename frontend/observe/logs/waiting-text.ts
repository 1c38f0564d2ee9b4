/** Characters that are kept as a string, at most. */
const MAX_TEXT = 8192
/** A block has room for what comes while another one is being written. */
const BLOCK_BYTES = 262_144
/** So much is worth a write of its own. */
const FULL_BYTES = 131_072
/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 3

/**
 * Text that waits to be written. It is kept as bytes: a string that grew from many pieces consists of them
 * until it is read, and the garbage collector copies each. Under load that was nearly half of its work.
 */
export class WaitingText {
  /** Blocks that have no more room. */
  #earlier: Buffer[] = []
  #earlierBytes = 0
  #block: Buffer | undefined
  #used = 0
  #text = ''
  /** A block that was written and can be used again. */
  #spare: Buffer | undefined

  /** Bytes, or characters of what came last. */
  get size(): number {
    return this.#earlierBytes + this.#used + this.#text.length
  }

  get isFull(): boolean {
    return this.size >= FULL_BYTES
  }

  add(text: string): void {
    this.#text += text
    if (this.#text.length >= MAX_TEXT) this.#convert()
  }

  /** Returns what waits, in UTF-8; nothing waits then. */
  take(): Buffer {
    const text = this.#text
    if (this.#block === undefined) {
      this.#text = ''
      return Buffer.from(text)
    }
    this.#convert()
    const last = this.#block.subarray(0, this.#used)
    const bytes = this.#earlier.length === 0 ? last : Buffer.concat([...this.#earlier, last])
    this.#block = undefined
    this.#used = 0
    this.#earlier = []
    this.#earlierBytes = 0
    return bytes
  }

  /** What `take` returned is not needed any more. */
  giveBack({ buffer }: Buffer): void {
    if (buffer.byteLength === BLOCK_BYTES) this.#spare ??= Buffer.from(buffer)
  }

  #convert(): void {
    const text = this.#text
    this.#text = ''
    const block = this.#blockFor(text.length * CHARACTER_BYTES)
    this.#used += block.write(text, this.#used)
  }

  #blockFor(bytes: number): Buffer {
    if (this.#block !== undefined) {
      if (this.#used + bytes <= this.#block.length) return this.#block
      this.#earlier.push(this.#block.subarray(0, this.#used))
      this.#earlierBytes += this.#used
      this.#used = 0
    }
    const spare = bytes <= BLOCK_BYTES ? this.#spare : undefined
    if (spare !== undefined) this.#spare = undefined
    return (this.#block = spare ?? Buffer.allocUnsafeSlow(Math.max(BLOCK_BYTES, bytes)))
  }
}
