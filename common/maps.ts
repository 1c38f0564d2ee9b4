/** Deletes after which the entries move. Fewer than a collection of the young generation sees. */
const MOVE_AFTER = 500

/**
 * A map for entries that come and go with every request. A Map of V8 makes a new table after every so many
 * deletes, and the old table points to the new one: once one of them is in the old generation, all later
 * ones stay, with what they held, until the next full collection (measured: a fifth of the unary requests
 * per second). So the entries move into a new Map before that.
 */
export class PassingMap<Key, Value> {
  #map = new Map<Key, Value>()
  #deletes = 0

  get size(): number {
    return this.#map.size
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key)
  }

  has(key: Key): boolean {
    return this.#map.has(key)
  }

  set(key: Key, value: Value): void {
    if (this.#deletes > MOVE_AFTER && this.#deletes > 2 * this.#map.size) {
      this.#map = new Map(this.#map)
      this.#deletes = 0
    }
    this.#map.set(key, value)
  }

  delete(key: Key): boolean {
    const had = this.#map.delete(key)
    if (had) this.#deletes += 1
    return had
  }

  clear(): void {
    this.#map = new Map()
    this.#deletes = 0
  }

  /** Oldest first. Nothing may be set while they are read. */
  values(): IterableIterator<Value> {
    return this.#map.values()
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return this.#map[Symbol.iterator]()
  }
}

/** The same for a set. */
export class PassingSet<Value> {
  readonly #map = new PassingMap<Value, Value>()

  get size(): number {
    return this.#map.size
  }

  has(value: Value): boolean {
    return this.#map.has(value)
  }

  add(value: Value): void {
    this.#map.set(value, value)
  }

  delete(value: Value): boolean {
    return this.#map.delete(value)
  }

  /** Oldest first. Nothing may be added while they are read. */
  [Symbol.iterator](): IterableIterator<Value> {
    return this.#map.values()
  }
}

/** Keeps an entry as the newest of at most `max`; the one that was kept longest ago makes room. */
export function remember<Key, Value>(map: Map<Key, Value>, max: number, key: Key, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size <= max) return
  const [oldest] = map.keys()
  map.delete(oldest!)
}
