/** The beginning of something whose rest has not come yet. A chunk that finds nothing kept is read where it is, without a copy. */
export class UnreadBytes {
  #chunks: Buffer[] = []
  #bytes = 0

  /** What is kept and the chunk behind it, to be read; undefined: together they have fewer than `wanted` bytes, and are kept. */
  join(chunk: Buffer, wanted: number): Buffer | undefined {
    if (this.#bytes === 0) return chunk
    this.#chunks.push(chunk)
    this.#bytes += chunk.byteLength
    if (this.#bytes < wanted) return undefined
    const joined = Buffer.concat(this.#chunks, this.#bytes)
    this.#chunks = []
    this.#bytes = 0
    return joined
  }

  /** Keeps the end of a chunk, from a byte that is there. */
  keep(chunk: Buffer, from: number): void {
    this.#chunks = [from === 0 ? chunk : chunk.subarray(from)]
    this.#bytes = chunk.byteLength - from
  }
}
