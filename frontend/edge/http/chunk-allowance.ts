/**
 * Chunks of any size that a body may have: some milliseconds of work, and a slow client that sends ten each
 * second needs half an hour for them. From then on they must have a size on average, since a chunk of a byte
 * takes as long as one of a kilobyte.
 */
const FREE_CHUNKS = 20_000
const MIN_CHUNK_BYTES = 32

/** What a client is told that goes beyond it. */
export const TINY_CHUNKS = `After ${FREE_CHUNKS} chunks, the chunks of a body must have ${MIN_CHUNK_BYTES} bytes on average`

/** The chunks that the body of one request may have. */
export class ChunkAllowance {
  #chunks = 0
  #bytes = 0
  readonly #free: number

  /** @param free chunks that may have any size */
  constructor(free = FREE_CHUNKS) {
    this.#free = free
  }

  /** Returns false if there are too many for their size. */
  take({ byteLength }: Buffer): boolean {
    this.#chunks += 1
    this.#bytes += byteLength
    return this.#chunks <= this.#free || this.#bytes >= this.#chunks * MIN_CHUNK_BYTES
  }
}
