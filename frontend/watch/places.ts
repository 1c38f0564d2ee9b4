/** Why there is no place: all are taken, or one key has its half. */
export type Refusal = 'all' | 'key'

/** What only some can do at once. One key has at most half of the places, so it keeps out no other. */
export class Places {
  readonly max: number
  readonly #taken = new Set<{ readonly key: string | undefined }>()

  constructor(max: number) {
    this.max = max
  }

  /** Places of one key. */
  get maxOfKey(): number {
    return this.max >> 1
  }

  /**
   * Takes a place. @returns what gives it back
   * @param key tells who takes it from others; undefined: many share it, or nobody knows who it is
   * @throws what `refused` makes of the reason when there is none
   */
  take(key: string | undefined, refused: (why: Refusal) => Error): () => void {
    const ofKey = key === undefined ? 0 : [...this.#taken].filter((each) => each.key === key).length
    if (this.#taken.size >= this.max) throw refused('all')
    if (ofKey >= this.maxOfKey) throw refused('key')
    const place = { key }
    this.#taken.add(place)
    return () => void this.#taken.delete(place)
  }
}
