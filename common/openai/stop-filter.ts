/**
 * Passes a text on, piece by piece, up to the first stop text. Neither the stop text nor what follows it
 * comes out. Of several stop texts that end at the same place the longest wins, however the text is cut into
 * pieces. A possible beginning of a stop text is held back until the next pieces decide. The time is
 * proportional to the text, whatever the client sends as stop texts.
 */
export class StopFilter {
  readonly #searches: readonly StopSearch[]
  #held = ''
  #stopped = false

  constructor(stops: readonly string[]) {
    this.#searches = stops.filter((stop) => stop !== '').map((stop) => new StopSearch(stop))
  }

  /** Whether a stop text was found, so that the text has ended. */
  get stopped(): boolean {
    return this.#stopped
  }

  /** Adds a piece; returns what can be sent now. */
  push(piece: string): string {
    if (this.#stopped) return ''
    const text = this.#held + piece
    const at = this.#first(text.length - piece.length, piece)
    if (at !== -1) {
      this.#stopped = true
      this.#held = ''
      return text.slice(0, at)
    }
    const keep = this.#searches.reduce((most, { matched }) => Math.max(most, matched), 0)
    this.#held = text.slice(text.length - keep)
    return text.slice(0, text.length - keep)
  }

  /** The text ended without a stop text; returns what was held back. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    return held
  }

  /** Where the first complete stop text begins in what was held and the piece; -1: there is none. */
  #first(held: number, piece: string): number {
    let first = -1
    let firstEnd = piece.length
    for (const search of this.#searches) {
      const end = search.next(piece, firstEnd)
      if (end === -1) continue
      const at = held + end - search.length
      if (first === -1 || end < firstEnd || at < first) first = at
      firstEnd = end
    }
    return first
  }
}

/** Seeks one text in pieces of another (Knuth, Morris and Pratt): no character is compared ever again. */
class StopSearch {
  /** How many characters of the stop text are the end of what was read. */
  matched = 0
  readonly #stop: string
  /** By number of matched characters: how many are left of them when the next one differs. */
  readonly #left: Uint32Array

  constructor(stop: string) {
    this.#stop = stop
    this.#left = new Uint32Array(stop.length + 1)
    let left = 0
    for (let at = 1; at < stop.length; at += 1) {
      left = this.#after(stop.charCodeAt(at), left)
      this.#left[at + 1] = left
    }
  }

  get length(): number {
    return this.#stop.length
  }

  /** Where the stop text ends in the first `end` characters of a piece; -1: not there. */
  next(piece: string, end: number): number {
    for (let at = 0; at < end; at += 1) {
      if (this.matched === 0) {
        at = piece.indexOf(this.#stop[0]!, at)
        if (at === -1 || at >= end) return -1
      }
      this.matched = this.#after(piece.charCodeAt(at), this.matched)
      if (this.matched === this.length) return at + 1
    }
    return -1
  }

  #after(code: number, matched: number): number {
    let left = matched
    while (left > 0 && this.#stop.charCodeAt(left) !== code) left = this.#left[left]!
    return this.#stop.charCodeAt(left) === code ? left + 1 : left
  }
}
