import type { LlamaModel, Token } from 'node-llama-cpp'

const INCOMPLETE = '\uFFFD'
/** A UTF-8 character has at most 4 bytes, and a token at least one. */
const MAX_PENDING = 4
/** Preceding tokens, which decide whether a token starts with a space. */
const CONTEXT_TOKENS = 16

/** Decodes tokens into whole characters; a token may hold part of one. */
export class TokenText {
  readonly #model: LlamaModel
  readonly #special: boolean
  #before: Token[] = []
  #pending: Token[] = []

  /**
   * @param special whether special tokens have a text
   * @param before tokens of the text before: without any, the runtime takes away the first space
   */
  constructor(model: LlamaModel, special = false, before: readonly Token[] = []) {
    this.#model = model
    this.#special = special
    this.#before = before.slice(-CONTEXT_TOKENS)
  }

  push(token: Token): string {
    this.#pending.push(token)
    const text = this.#text()
    return text.endsWith(INCOMPLETE) && this.#pending.length < MAX_PENDING ? '' : this.#take(text)
  }

  /** The rest, possibly an incomplete character. */
  end(): string {
    return this.#pending.length === 0 ? '' : this.#take(this.#text())
  }

  #text(): string {
    return this.#model.detokenize(this.#pending, this.#special, this.#before)
  }

  #take(text: string): string {
    this.#before = [...this.#before, ...this.#pending].slice(-CONTEXT_TOKENS)
    this.#pending = []
    return text
  }
}
