import { readSync } from 'node:fs'

/** Bytes read at once: the words of a vocabulary are short, and there are hundreds of thousands. */
const PIECE_BYTES = 256 * 1024

/** Names of keys and kinds are shorter; longer texts are not read. */
const MAX_TEXT_BYTES = 256

/**
 * Numbers and texts of a file, one after the other, little-endian. Behind the end of the file all numbers are
 * infinite.
 */
export class FileWords {
  readonly #file: number
  readonly #size: number
  readonly #lengthBytes: 4 | 8
  readonly #piece = Buffer.alloc(PIECE_BYTES)
  #pieceAt = 0
  #pieceEnd = 0
  #at: number

  /**
   * @param at where to begin
   * @param size of the file in bytes
   * @param lengthBytes of a length
   */
  constructor(file: number, at: number, size: number, lengthBytes: 4 | 8) {
    this.#file = file
    this.#at = at
    this.#size = size
    this.#lengthBytes = lengthBytes
  }

  /** Bytes up to the end of the file. */
  get left(): number {
    return this.#size - this.#at
  }

  uint32(): number {
    const place = this.#take(4)
    return place === undefined ? Infinity : this.#piece.readUInt32LE(place)
  }

  length(): number {
    if (this.#lengthBytes === 4) return this.uint32()
    const place = this.#take(8)
    return place === undefined ? Infinity : Number(this.#piece.readBigUInt64LE(place))
  }

  /** A text of known length, if it is short; undefined: the file has fewer bytes. */
  text(bytes: number): string | undefined {
    if (bytes > MAX_TEXT_BYTES) return this.skip(bytes) ? '' : undefined
    const place = this.#take(bytes)
    return place === undefined ? undefined : this.#piece.toString('utf8', place, place + bytes)
  }

  /** False: the file has fewer bytes. */
  skip(bytes: number): boolean {
    if (bytes > this.left) return false
    this.#at += bytes
    return true
  }

  /** Where the bytes are in the piece; undefined: the file has fewer. */
  #take(bytes: number): number | undefined {
    const at = this.#at
    if (!this.skip(bytes)) return undefined
    if (at < this.#pieceAt || at + bytes > this.#pieceEnd) {
      this.#pieceAt = at
      this.#pieceEnd = at + readSync(this.#file, this.#piece, 0, PIECE_BYTES, at)
      if (at + bytes > this.#pieceEnd) return undefined
    }
    return at - this.#pieceAt
  }
}
