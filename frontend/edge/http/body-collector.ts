import { ByteCollector } from '../../jobs/byte-collector.ts'

const NO_BYTES = Buffer.alloc(0)

/**
 * Joins the pieces of a body of at most `limit` bytes as they come. A body that came in one piece is that
 * piece, without a copy.
 */
export class BodyCollector {
  readonly #limit: number
  #only: Buffer = NO_BYTES
  #joined: ByteCollector | undefined

  constructor(limit: number) {
    this.#limit = limit
  }

  /** False: the piece does not fit, and was not added. */
  add(piece: Buffer): boolean {
    if (this.#joined === undefined) {
      if (this.#only.byteLength === 0 && piece.byteLength <= this.#limit) {
        this.#only = piece
        return true
      }
      this.#joined = new ByteCollector(this.#limit)
      this.#joined.add(this.#only)
      this.#only = NO_BYTES
    }
    return this.#joined.add(piece)
  }

  bytes(): Buffer {
    return this.#joined?.bytes() ?? this.#only
  }
}
