import type { LlamaModel, Token } from 'node-llama-cpp'

const INCOMPLETE = '\uFFFD'
/** No character of UTF-8 has more bytes, and no token less than one. */
const MAX_PENDING = 4
/** What came before decides whether a token begins with a space. */
const CONTEXT_TOKENS = 16

/** Tokens as text, in whole characters: a token may be a part of one. */
export class TokenText {
  readonly #model: LlamaModel
  #before: Token[] = []
  #pending: Token[] = []

  constructor(model: LlamaModel) {
    this.#model = model
  }

  push(token: Token): string {
    this.#pending.push(token)
    const text = this.#text()
    return text.endsWith(INCOMPLETE) && this.#pending.length < MAX_PENDING ? '' : this.#take(text)
  }

  /** What is left; it may be no whole character. */
  end(): string {
    return this.#pending.length === 0 ? '' : this.#take(this.#text())
  }

  #text(): string {
    return this.#model.detokenize(this.#pending, false, this.#before)
  }

  #take(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-CONTEXT_TOKENS)
    this.#pending = []
    return text
  }
}
