/**
 * Passes a text on, piece by piece, up to the first stop text. Neither the stop text nor what follows it
 * comes out. Of several stop texts that end at the same place the longest wins, however the text is cut into
 * pieces. A possible beginning of a stop text is held back until the next pieces decide.
 */
export class StopFilter {
  readonly #stops: readonly string[]
  #held = ''
  #stopped = false

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '')
  }

  /** Whether a stop text was found, so that the text has ended. */
  get stopped(): boolean {
    return this.#stopped
  }

  /** Adds a piece; returns what can be sent now. */
  push(piece: string): string {
    if (this.#stopped) return ''
    const text = this.#held + piece
    const at = this.#first(text)
    if (at !== -1) {
      this.#stopped = true
      this.#held = ''
      return text.slice(0, at)
    }
    const keep = this.#partial(text)
    this.#held = text.slice(text.length - keep)
    return text.slice(0, text.length - keep)
  }

  /** The text ended without a stop text; returns what was held back. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    return held
  }

  /** Where the first complete stop text begins; -1: there is none. */
  #first(text: string): number {
    let first = -1
    let firstEnd = Infinity
    for (const stop of this.#stops) {
      const at = text.indexOf(stop)
      const end = at + stop.length
      if (at === -1 || end > firstEnd || (end === firstEnd && at > first)) continue
      first = at
      firstEnd = end
    }
    return first
  }

  /** Number of characters at the end of the text that may begin a stop text. */
  #partial(text: string): number {
    let longest = 0
    for (const stop of this.#stops) {
      for (let size = Math.min(stop.length - 1, text.length); size > longest; size--) {
        if (text.endsWith(stop.slice(0, size))) longest = size
      }
    }
    return longest
  }
}
