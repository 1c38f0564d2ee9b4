/** The bytes that Node.js reads from a socket at once. A larger chunk was joined, for a large message. */
export const SOCKET_READ_BYTES = 65_536

/**
 * Keeps the beginning of something that has not arrived completely. A chunk that arrives when nothing is kept
 * is read in place, without a copy.
 */
export class UnreadBytes {
  #chunks: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Returns the kept bytes joined with the chunk. Returns undefined, and keeps both, if they are less than
   * `wanted` bytes.
   */
  join(chunk: Buffer, wanted: number): Buffer | undefined {
    if (this.#bytes === 0) return chunk
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < wanted) return undefined
    const joined = Buffer.concat(this.#chunks, this.#bytes)
    this.#chunks = []
    this.#bytes = 0
    return joined
  }

  /** Keeps the end of a chunk, from the byte at `from`. */
  keep(chunk: Buffer, from: number): void {
    this.#chunks = [from === 0 ? chunk : chunk.subarray(from)]
    this.#bytes = chunk.length - from
  }
}
