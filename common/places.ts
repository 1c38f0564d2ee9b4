/** Who wants a place. */
export interface Taker {
  /** Tells it from others; undefined: many share it, or nobody knows who it is. */
  readonly key: string | undefined
  /** It may use only some models. */
  readonly isNarrow: boolean
}

/** Who has taken too many places. */
export type Refusal = 'all' | 'narrow' | 'key'

/**
 * What only some can do at the same time. Those who may use only some models have half of the places, and one
 * key has half of those that are for it, so that none of them keeps out the others.
 */
export class Places {
  readonly max: number
  readonly #taken = new Set<Taker>()

  constructor(max: number) {
    this.max = max
  }

  /** Places of all who may use only some models. */
  get maxNarrow(): number {
    return this.max >> 1
  }

  /** Places of one key. */
  maxOf({ isNarrow }: Taker): number {
    return (isNarrow ? this.maxNarrow : this.max) >> 1
  }

  /**
   * Takes a place. @returns what gives it back
   * @throws what `refused` makes of the reason when there is none
   */
  take(taker: Taker, refused: (why: Refusal) => Error): () => void {
    const why = this.#refusal(taker)
    if (why !== undefined) throw refused(why)
    // An object of its own, because one taker may have several places.
    const place = { ...taker }
    this.#taken.add(place)
    return () => void this.#taken.delete(place)
  }

  #refusal(taker: Taker): Refusal | undefined {
    const taken = [...this.#taken]
    const { key } = taker
    if (taken.length >= this.max) return 'all'
    const isOver = key !== undefined && taken.filter((each) => each.key === key).length >= this.maxOf(taker)
    if (isOver) return 'key'
    const narrow = taken.filter(({ isNarrow }) => isNarrow).length
    return taker.isNarrow && narrow >= this.maxNarrow ? 'narrow' : undefined
  }
}
