/** More than a server has of routes and models. */
const MAX_NAMES = 1_000

/**
 * Names of spans, each of two words. The same two are joined once: a text that is made anew is also hashed
 * anew when EncodedSpans looks for the span of its name before.
 */
export class SpanNames {
  readonly #byFirst = new Map<string, Map<string, string>>()

  of(first: string, second: string): string {
    let names = this.#byFirst.get(first)
    if (names === undefined) this.#byFirst.set(first, (names = new Map<string, string>()))
    let name = names.get(second)
    if (name !== undefined) return name
    if (names.size >= MAX_NAMES) names.clear()
    name = `${first} ${second}`
    names.set(second, name)
    return name
  }
}
