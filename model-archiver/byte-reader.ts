/** Reads an iterable of chunks by counts of bytes, and no further ahead than the chunk that a read ends in. */
export class ByteReader {
  readonly #chunks: AsyncIterator<Buffer>
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** What comes next, at most `bytes` of it (1 or more); undefined at the end. */
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

  /** Exactly so many bytes; undefined at the end. @throws Error when it comes before all are there */
  async exactly(bytes: number): Promise<Buffer | undefined> {
    const first = await this.some(bytes)
    if (first === undefined || first.length === bytes) return first
    const parts = [first]
    for await (const part of this.each(bytes - first.length)) parts.push(part)
    return Buffer.concat(parts)
  }

  /** So many bytes in the pieces that they come in. @throws Error when the end comes before */
  async *each(bytes: number): AsyncGenerator<Buffer, void> {
    for (let left = bytes; left > 0;) {
      const part = await this.some(left)
      if (part === undefined) throw new Error(`it ends ${left} bytes too early`)
      left -= part.length
      yield part
    }
  }
}
