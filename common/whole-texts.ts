import { toUSVString } from 'node:util'

/**
 * The half of a character at the end of the text, which is a high surrogate, or ''. Code that cuts strings by
 * their length, and some tokenizers, end there.
 */
export function halfAtEnd(text: string): string {
  const last = text.charCodeAt(text.length - 1)
  return last >= 0xd800 && last <= 0xdbff ? text.slice(-1) : ''
}

/** Whether the text has no half of a character, and so a form in UTF-8. */
export function isWellFormed(text: string): boolean {
  return toUSVString(text) === text
}

/** Texts that arrive in pieces, by name: half a character at the end of a piece waits for the next one. */
export class WholeTexts<Name> {
  readonly #halves = new Map<Name, string>()

  get waits(): boolean {
    return this.#halves.size > 0
  }

  /** The piece with the half that waited, and without the half at its end. Other halves become U+FFFD. */
  next(name: Name, piece: string): string {
    const text = (this.#halves.get(name) ?? '') + piece
    const half = halfAtEnd(text)
    if (half === '') this.#halves.delete(name)
    else this.#halves.set(name, half)
    return toUSVString(text.slice(0, text.length - half.length))
  }

  /** Takes what waits for a next piece that does not come, each U+FFFD. */
  end(): [Name, string][] {
    const rest = [...this.#halves.keys()].map((name): [Name, string] => [name, '\ufffd'])
    this.#halves.clear()
    return rest
  }
}
