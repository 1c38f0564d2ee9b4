/** Reads counts of bytes from an iterable of chunks. Reads at most to the end of the chunk that it needs. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next bytes, between 1 and `bytes` of them; undefined at the end. */
  async some(bytes: number): Promise<Buffer | undefined> {
    while (this.#rest.length === 0) {
      const next = await this.#chunks.next()
      if (next.done === true) return undefined
      this.#rest = next.value
    }
    const part = this.#rest.subarray(0, bytes)
    this.#rest = this.#rest.subarray(part.length)
    return part
  }

  /** The next `bytes` bytes; undefined at the end. @throws Error at a premature end */
  async exactly(bytes: number): Promise<Buffer | undefined> {
    const first = await this.some(bytes)
    if (first === undefined || first.length === bytes) return first
    const parts = [first]
    for await (const part of this.each(bytes - first.length)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** The next `bytes` bytes, in the chunks in which they arrive. @throws Error at a premature end */
  async *each(bytes: number): AsyncGenerator<Buffer, void> {
    for (let left = bytes; left > 0;) {
      const part = await this.some(left)
      if (part === undefined) throw new Error(`it ends ${left} bytes too early`)
      left -= part.length
      yield part
    }
  }
}
