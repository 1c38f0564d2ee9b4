import {
  TokenBias,
  type LlamaContextSequence,
  type LlamaGrammar,
  LlamaGrammarEvaluationState,
  type LlamaModel,
  type SequenceEvaluateOptions,
  type Token,
} from 'node-llama-cpp'
import { StopFilter } from 'torchserve-ts'
import type { Interlude, Turn } from './turns.ts'
import { type ScoredToken, scorePrompt, tokenLogprob, TokenText } from './tokens.ts'
import { biasesOf } from './native-sampling.ts'

/** Sampling parameters of one generation. */
export interface Sampling {
  /** The context limits it too. 0: only the prompt is computed. */
  maxTokens: number
  /** The model does not end the text before so many tokens. Default 0; Infinity: never. */
  minTokens?: number
  /** 0 always takes the most likely token. */
  temperature: number
  topP: number
  /** 0: all. */
  topK: number
  minP: number
  seed: number
  /** The text ends before the first occurrence of any of these. */
  stop: readonly string[]
  /** Applies to tokens among the last 64; 1: none. */
  repeatPenalty: number
  frequencyPenalty?: number
  presencePenalty?: number
  /** Added to the logits of tokens, by id; -100 or less excludes a token. */
  logitBias?: ReadonlyMap<number, number> | undefined
  grammar?: LlamaGrammar | undefined
  /** Number of alternative tokens to report, 0 or more. Undefined: no log probabilities. */
  topLogprobs?: number
  /** The text goes on where the prompt ends: its first word keeps its space. */
  continues?: boolean
  /** Report also the tokens of the prompt, if there are log probabilities. */
  echo?: Echo
}

/** How the tokens of a prompt stand in its text. */
export interface Echo {
  /** Leading tokens that the text does not have. */
  skipped: number
  /** Whether the text has the special tokens. */
  special: boolean
}

/** Result of one step: a token, or a part of the prompt. */
export interface Piece {
  /** Empty for the prompt, while characters are incomplete, and while a stop text may have begun. */
  text: string
  /** Number of tokens so far; 0: a token of the prompt. */
  tokens: number
  /** Length of what the token adds to the text, before stop texts are held back. */
  characters?: number
  logprob?: ScoredToken
  /** On the last piece only. */
  finish?: 'stop' | 'length'
}

/** Tokens per step of computing a prompt; cancellation is checked between steps. */
const PREFILL_TOKENS = 128
const PENALTY_TOKENS = 64
/** OpenAI's lowest bias excludes a token. */
const NEVER = -100
const SEEDS = 2 ** 32

/** The text that continues a prompt, generated token by token. */
export class Generation {
  readonly #prompt: readonly Token[]
  readonly #sampling: Sampling
  readonly #generated: Token[] = []
  readonly #text: TokenText
  readonly #filter: StopFilter
  readonly #options: SequenceEvaluateOptions
  /** Whether the log probabilities of the prompt were given. */
  #isScored = false
  #ended = false

  constructor(model: LlamaModel, prompt: readonly Token[], sampling: Sampling) {
    this.#prompt = prompt
    this.#sampling = sampling
    this.#text = new TokenText(model, false, sampling.continues === true ? prompt : [])
    this.#filter = new StopFilter(sampling.stop)
    this.#options = evaluateOptions(model, sampling, this.#generated)
  }

  get ended(): boolean {
    return this.#ended
  }

  /**
   * Goes on in a fresh sequence, until the text ends or its turn is wanted. Computes the next token when the
   * next piece is requested, so a slow reader slows only its own generation.
   * @throws the signal's reason once it is aborted
   */
  async *run(
    sequence: LlamaContextSequence,
    turn: Turn,
    interlude: Interlude,
    signal: AbortSignal,
  ): AsyncGenerator<Piece> {
    const { topLogprobs: top, echo, maxTokens } = this.#sampling
    const before = [...this.#prompt, ...this.#generated]
    let rest = before.slice(-1)
    if (top !== undefined && echo !== undefined && !this.#isScored) {
      yield* scorePrompt(sequence, before, { top, ...echo }, interlude, signal)
      this.#isScored = true
    } else if (maxTokens > 0) rest = yield* prefill(sequence, before, turn, interlude, signal)
    if (maxTokens === 0) {
      this.#ended = true
      yield { text: '', tokens: 0, finish: 'length' }
      return
    }
    const wanted = { probabilities: top !== undefined } as { probabilities: true }
    // The numbers of a seed begin anew in each sequence.
    const options = { ...this.#options, seed: (this.#sampling.seed + this.#generated.length) % SEEDS }
    if (turn.isWanted) return
    for await (const { token, probabilities } of sequence.evaluateWithMetadata(rest, wanted, options)) {
      signal.throwIfAborted()
      this.#generated.push(token)
      const tokens = this.#generated.length
      const added = this.#text.push(token)
      const ready = this.#filter.push(added)
      const piece: Piece = { text: ready, tokens, characters: added.length }
      if (probabilities !== undefined)
        piece.logprob = tokenLogprob(sequence.model, token, probabilities, top!)
      this.#ended = this.#filter.stopped || tokens >= maxTokens
      if (this.#filter.stopped) yield { ...piece, finish: 'stop' }
      else if (this.#ended) yield { ...piece, text: ready + this.#rest(), finish: 'length' }
      else yield piece
      if (this.#ended || turn.isWanted) return
      signal.throwIfAborted()
      if (interlude.over !== undefined) await interlude.over
    }
    this.#ended = true
    yield { text: this.#rest(), tokens: this.#generated.length, finish: 'stop' }
  }

  #rest(): string {
    return this.#filter.push(this.#text.end()) + this.#filter.flush()
  }
}

/** Computes the prompt except for its last tokens. @returns these */
async function* prefill(
  sequence: LlamaContextSequence,
  prompt: readonly Token[],
  turn: Turn,
  interlude: Interlude,
  signal: AbortSignal,
): AsyncGenerator<Piece, Token[]> {
  let from = 0
  for (; prompt.length - from > PREFILL_TOKENS && !turn.isWanted; from += PREFILL_TOKENS) {
    signal.throwIfAborted()
    if (interlude.over !== undefined) await interlude.over
    await sequence.evaluateWithoutGeneratingNewTokens(prompt.slice(from, from + PREFILL_TOKENS))
    yield { text: '', tokens: 0 }
  }
  if (interlude.over !== undefined) await interlude.over
  signal.throwIfAborted()
  return prompt.slice(from)
}

function evaluateOptions(
  model: LlamaModel,
  sampling: Sampling,
  generated: readonly Token[],
): SequenceEvaluateOptions {
  const { temperature, topP, topK, minP, seed, grammar, logitBias = new Map(), minTokens = 0 } = sampling
  const free = bias(model, logitBias)
  const endless = bias(model, new Map([...logitBias, ...endTokens(model, minTokens)]))
  return {
    temperature,
    topP,
    topK,
    minP,
    seed,
    repeatPenalty: penalty(model, sampling, generated),
    tokenBias: () => (generated.length < minTokens ? endless : free),
    grammarEvaluationState: grammar && new LlamaGrammarEvaluationState({ model, grammar }),
  }
}

function penalty(
  model: LlamaModel,
  { repeatPenalty, frequencyPenalty = 0, presencePenalty = 0 }: Sampling,
  generated: readonly Token[],
): SequenceEvaluateOptions['repeatPenalty'] {
  if (repeatPenalty === 1 && frequencyPenalty === 0 && presencePenalty === 0) return undefined
  return {
    penalty: repeatPenalty,
    frequencyPenalty,
    presencePenalty,
    maxPunishTokens: PENALTY_TOKENS,
    punishTokens: () => generated.slice(-PENALTY_TOKENS).filter((token) => token !== model.tokens.nl),
  }
}

function endTokens(model: LlamaModel, minTokens: number): [number, number][] {
  if (minTokens === 0) return []
  return [...model.iterateAllTokens()].flatMap((token) => (model.isEogToken(token) ? [[token, NEVER]] : []))
}

function bias(model: LlamaModel, biases: ReadonlyMap<number, number>): TokenBias {
  const made = new TokenBias(model.tokenizer)
  for (const [token, logit] of biases) biasesOf(made).set(token as Token, logit <= NEVER ? -Infinity : logit)
  return made
}
