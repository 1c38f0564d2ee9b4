const FIRST_CAPACITY = 1024

/**
 * Joins the items of a stream into one body of at most `limit` bytes. It copies them into one growing buffer,
 * so the cost depends on the bytes and not on the number of items.
 */
export class ByteCollector {
  readonly #limit: number
  #buffer: Buffer
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
    this.#buffer = Buffer.allocUnsafe(Math.min(FIRST_CAPACITY, limit))
  }

  /** Bytes that it holds, used or not. */
  get capacity(): number {
    return this.#buffer.byteLength
  }

  /** Returns false, and adds nothing, if the item does not fit. */
  add(item: Uint8Array): boolean {
    const length = this.#length + item.byteLength
    if (length > this.#limit) return false
    if (length > this.#buffer.byteLength) this.#grow(length)
    this.#buffer.set(item, this.#length)
    this.#length = length
    return true
  }

  /** The collected bytes: a view that is valid until the next `add`. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #grow(needed: number): void {
    const capacity = Math.min(this.#limit, Math.max(needed, this.#buffer.byteLength * 2))
    const grown = Buffer.allocUnsafe(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}
