import { isUtf8 } from 'node:buffer'
import { LlamaVocabularyType, type LlamaModel, type Token } from 'node-llama-cpp'
import type { CompletionLogprobs, TokenLogprob } from 'torchserve-ts'

export type { TokenLogprob }

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
export function unscored(model: LlamaModel, token: Token): ScoredToken {
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
