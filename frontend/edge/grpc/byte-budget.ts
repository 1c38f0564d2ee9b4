/** Bytes that may be held at one time. What a part holds counts for the whole too. */
export class ByteBudget {
  /** Bytes; may be raised while some are taken. */
  limit: number
  readonly #whole: ByteBudget | undefined
  #taken = 0

  constructor(limit: number, whole?: ByteBudget) {
    this.limit = limit
    this.#whole = whole
  }

  /** Bytes that are held now. */
  get taken(): number {
    return this.#taken
  }

  /** False, and nothing is taken: there is no room for so many here, or in the whole. */
  take(bytes: number): boolean {
    if (this.#taken + bytes > this.limit) return false
    if (this.#whole !== undefined && !this.#whole.take(bytes)) return false
    this.#taken += bytes
    return true
  }

  give(bytes: number): void {
    this.#taken -= bytes
    this.#whole?.give(bytes)
  }
}
