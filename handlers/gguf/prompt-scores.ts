import type { LlamaContextSequence, Token } from 'node-llama-cpp'
import type { Piece } from './generation.ts'
import type { Interlude } from './interlude.ts'
import { tokenLogprob, unscored } from './logprobs.ts'
import { TokenText } from './token-text.ts'

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
