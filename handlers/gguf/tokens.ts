import { isUtf8 } from 'node:buffer'
import { type LlamaContextSequence, type LlamaModel, LlamaVocabularyType, type Token } from 'node-llama-cpp'
import type { CompletionLogprobs, TokenLogprob } from 'torchserve-ts'
import type { Piece } from './generation.ts'
import type { Interlude } from './turns.ts'

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

/** A token; null: its log probability is unknown, because nothing is before it. */
export type ScoredToken =
  TokenLogprob | (Omit<TokenLogprob, 'logprob' | 'top_logprobs'> & { logprob: null; top_logprobs: null })

/** Log probabilities of a token and of the most likely ones, by the model's logits alone. */
export function tokenLogprob(
  model: LlamaModel,
  token: Token,
  probabilities: ReadonlyMap<Token, number>,
  top: number,
): TokenLogprob {
  const likeliest: TokenLogprob['top_logprobs'] = []
  for (const [other, probability] of probabilities) {
    if (likeliest.length >= top) break
    likeliest.push(entry(model, other, probability))
  }
  return { ...entry(model, token, probabilities.get(token) ?? 0), top_logprobs: likeliest }
}

/** The first token of a prompt. */
function unscored(model: LlamaModel, token: Token): ScoredToken {
  return { ...entry(model, token, 0), logprob: null, top_logprobs: null }
}

function entry(model: LlamaModel, token: Token, probability: number) {
  // JSON has no infinity; the OpenAI API uses -9999 for tokens that are extremely unlikely.
  const logprob = probability > 0 ? Math.log(probability) : -9999
  const bytes = tokenBytes(model, token)
  return { token: tokenName(bytes), logprob, bytes: [...bytes] }
}

/** A part of a character has no text. It is written as OpenAI does: `\xe2\x80`. */
function tokenName(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString()
  return [...bytes].map((byte) => String.raw`\x${byte.toString(16).padStart(2, '0')}`).join('')
}

/** The bytes of a token, as llama.cpp's llama_token_to_piece has them: detokenize() makes text of them. */
function tokenBytes(model: LlamaModel, token: Token): Buffer {
  const text = model.fileInfo.metadata.tokenizer.ggml?.tokens?.[token]
  if (text === undefined) return Buffer.from(model.detokenize([token], true))
  const { byte, normal } = model.getTokenAttributes(token)
  if (byte) return Buffer.from([Number(/0x[\dA-F]{2}/.exec(text)?.[0] ?? 0)])
  if (!normal) return Buffer.from(text)
  switch (model.vocabularyType) {
    case LlamaVocabularyType.bpe:
      return Buffer.concat(
        Array.from(text, (character) => BPE_BYTES.get(character) ?? Buffer.from(character)),
      )
    case LlamaVocabularyType.spm:
    case LlamaVocabularyType.ugm:
      return Buffer.from(text.replaceAll('\u2581', ' '))
    default:
      return Buffer.from(model.detokenize([token], true))
  }
}

/** GPT-2's characters for bytes: printable ones stand for themselves, the others for those from 256 on. */
const BPE_BYTES: ReadonlyMap<string, Buffer> = new Map(
  (() => {
    let next = 256
    return Array.from({ length: 256 }, (_, byte): [string, Buffer] => {
      const isPrintable =
        (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff)
      return [String.fromCodePoint(isPrintable ? byte : next++), Buffer.from([byte])]
    })
  })(),
)

/**
 * The form of the legacy completions.
 * @param offsets of the tokens in the text
 */
export function legacyLogprobs(tokens: readonly ScoredToken[], offsets: number[]): CompletionLogprobs {
  return {
    tokens: tokens.map(legacyName),
    token_logprobs: tokens.map(({ logprob }) => logprob),
    top_logprobs: tokens.map((each) =>
      each.logprob === null
        ? null
        : Object.fromEntries([...each.top_logprobs, each].map((one) => [legacyName(one), one.logprob])),
    ),
    text_offset: offsets,
  }
}

/** OpenAI's name for a part of a character: `bytes:\xe2\x80`. */
function legacyName({ token, bytes }: Pick<TokenLogprob, 'token' | 'bytes'>): string {
  return bytes === null || isUtf8(Buffer.from(bytes)) ? token : `bytes:${token}`
}

/** The runtime keeps the probabilities of all tokens for each token that is computed: so many together. */
const MAX_PROBABILITIES = 2 ** 20
const MAX_STEP_TOKENS = 128

/**
 * Computes a prompt except for its last token. Yields a piece for each of its tokens, with its log
 * probability after those before it; the first has none.
 * @param skipped leading tokens that have no place in the text
 * @param special whether special tokens are part of the text
 * @throws the signal's reason once it is aborted
 */
export async function* scorePrompt(
  sequence: LlamaContextSequence,
  prompt: readonly Token[],
  { top, skipped, special }: { top: number; skipped: number; special: boolean },
  interlude: Interlude,
  signal: AbortSignal,
): AsyncGenerator<Piece> {
  const { model } = sequence
  const decoder = new TokenText(model, special)
  let before: ReadonlyMap<Token, number> | undefined
  let size = 1
  for (let from = 0; from < prompt.length; from += size) {
    if (before !== undefined)
      size = Math.max(1, Math.min(MAX_STEP_TOKENS, Math.floor(MAX_PROBABILITIES / before.size)))
    if (interlude.over !== undefined) await interlude.over
    signal.throwIfAborted()
    const step = prompt.slice(from, from + size)
    const computed = from + size < prompt.length ? step : step.slice(0, -1)
    const wanted = { generateNext: { probabilities: true as const } }
    const outputs = await sequence.controlledEvaluate(computed.map((token) => [token, wanted]))
    for (const [i, token] of step.entries()) {
      const characters = from + i < skipped ? 0 : decoder.push(token).length
      const scored = before === undefined ? unscored(model, token) : tokenLogprob(model, token, before, top)
      yield { text: '', tokens: 0, characters, logprob: scored }
      before = outputs[i]?.next.probabilities
    }
  }
}
