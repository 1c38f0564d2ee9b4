import type { LlamaModel, Token } from 'node-llama-cpp'
import type { TokenLogprob } from 'torchserve-ts'

export type { TokenLogprob }

/** Log probabilities of the chosen token and the most likely ones, after temperature, top_p and top_k. */
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

function entry(model: LlamaModel, token: Token, probability: number) {
  const text = model.detokenize([token], true)
  // JSON has no infinity; the OpenAI API uses -9999 for tokens that are extremely unlikely.
  const logprob = probability > 0 ? Math.log(probability) : -9999
  return { token: text, logprob, bytes: [...Buffer.from(text)] }
}
