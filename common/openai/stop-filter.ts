/**
 * Lets a text through piece by piece until one of some texts is complete in it; neither that nor anything after it comes out. Of several that
 * end together the longest counts, however the text is cut. What may be the beginning of one waits until it is clear.
 */
export class StopFilter {
  readonly #stops: readonly string[]
  #held = ''
  #stopped = false

  constructor(stops: readonly string[]) {
    this.#stops = stops.filter((stop) => stop !== '')
  }

  /** Whether a stop was seen: the text has ended. */
  get stopped(): boolean {
    return this.#stopped
  }

  /** What may go out now. */
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

  /** The text has ended by itself: what waited was no stop. */
  flush(): string {
    const held = this.#held
    this.#held = ''
    return held
  }

  /** Where the stop that is complete first begins; -1: there is none. */
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

  /** Characters at the end of the text with which a stop begins. */
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
