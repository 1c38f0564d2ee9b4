import { ByteCollector } from '../../../common/byte-flow.ts'

const NO_BYTES = Buffer.alloc(0)

/**
 * Joins the chunks of a body of at most `limit` bytes as they arrive. A body in a single chunk is not copied.
 */
export class BodyCollector {
  readonly #limit: number
  #only: Buffer = NO_BYTES
  #joined: ByteCollector | undefined

  constructor(limit: number) {
    this.#limit = limit
  }

  /** Returns false, and adds nothing, if the chunk does not fit. */
  add(piece: Buffer): boolean {
    if (this.#joined === undefined) {
      if (this.#only.length === 0 && piece.length <= this.#limit) {
        this.#only = piece
        return true
      }
      this.#joined = new ByteCollector(this.#limit)
      this.#joined.add(this.#only)
      this.#only = NO_BYTES
    }
    return this.#joined.add(piece)
  }

  /** Bytes that it holds, used or not. */
  get capacity(): number {
    return this.#joined?.capacity ?? this.#only.length
  }

  bytes(): Buffer {
    return this.#joined?.bytes() ?? this.#only
  }
}
