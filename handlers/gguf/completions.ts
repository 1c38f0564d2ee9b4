import type { Token } from 'node-llama-cpp'
import {
  type CompletionChunk,
  type CompletionRequest,
  type EmbeddingsRequest,
  type EmbeddingsResult,
  OpenAIError,
} from 'torchserve-ts'
import { merge, usageOf } from './chat.ts'
import type { Engine } from './engine.ts'
import type { Echo, Piece } from './generation.ts'
import { checkFields, extraFlag, samplingOf } from './openai-fields.ts'
import type { SamplingDefaults } from './settings.ts'
import { legacyLogprobs, type ScoredToken } from './tokens.ts'

/** The OpenAI API's default of max_tokens. */
const DEFAULT_TOKENS = 16
/** Tokens of a prompt in one chunk. */
const MAX_SCORED = 32

/**
 * The chunks of a legacy completion. Choice k of prompt i is number i * n + k; all are generated
 * concurrently.
 */
export async function* completions(
  engine: Engine,
  defaults: SamplingDefaults,
  request: CompletionRequest,
  signal: AbortSignal,
): AsyncGenerator<CompletionChunk> {
  checkFields('completions', request)
  const special = extraFlag(request, 'parse_special', true)
  const prompts = promptsOf(request).map((given) => ({ given, tokens: tokensOf(engine, given, special) }))
  for (const { tokens } of prompts) engine.roomAfter(tokens.length)
  const n = request.n ?? 1
  const counts: number[] = []
  const choices = prompts.flatMap(({ given, tokens }, i) =>
    Array.from({ length: n }, (_, k) => {
      const index = i * n + k
      const text = typeof given === 'string' ? given : engine.model.detokenize(tokens)
      const sampling = {
        ...samplingOf(request, { ...defaults, maxTokens: DEFAULT_TOKENS }, index),
        continues: true,
        ...(request.logprobs != null && { topLogprobs: request.logprobs }),
        ...(request.echo === true && { echo: echoOf(engine, given, tokens) }),
      }
      const pieces = engine.generate(tokens, sampling, signal)
      return choice(index, pieces, request.echo === true ? text : '', counts)
    }),
  )
  yield* merge(choices)
  const asked = prompts.reduce((sum, { tokens }) => sum + tokens.length, 0)
  const made = counts.reduce((sum, count) => sum + count, 0)
  yield { choices: [], usage: usageOf(asked, made) }
}

function promptsOf({ prompt }: CompletionRequest): (string | number[])[] {
  if (typeof prompt === 'string') return [prompt]
  return typeof prompt[0] === 'number' ? [prompt as number[]] : (prompt as string[] | number[][])
}

/**
 * @param special whether texts of special tokens become these tokens
 * @throws OpenAIError 400 for an empty prompt, and for tokens outside the model's vocabulary
 */
function tokensOf(engine: Engine, prompt: string | number[], special: boolean, param = 'prompt'): Token[] {
  if (typeof prompt === 'string') {
    const tokens = engine.promptTokens(prompt, special)
    if (tokens.length > 0) return tokens
    throw new OpenAIError(`${param} must not be empty`, 400, { param })
  }
  const known = engine.vocabularySize
  if (prompt.some((token) => token >= known))
    throw new OpenAIError(`${param} must contain only tokens of the model`, 400, { param })
  return prompt as Token[]
}

/** A text lacks the begin-of-text token that the tokens have, unless it begins with its name. */
function echoOf({ model }: Engine, prompt: string | number[], [first]: readonly Token[]): Echo {
  if (typeof prompt !== 'string') return { skipped: 0, special: false }
  const { bos, bosString } = model.tokens
  return { skipped: first === bos && !prompt.startsWith(bosString ?? '') ? 1 : 0, special: true }
}

async function* choice(
  index: number,
  pieces: AsyncGenerator<Piece>,
  echo: string,
  counts: number[],
): AsyncGenerator<CompletionChunk> {
  let scored: ScoredToken[] = []
  let offsets: number[] = []
  // The answer is behind the prompt, whatever the lengths of its tokens are.
  let [inPrompt, inAnswer] = [0, echo.length]
  if (echo !== '') yield { choices: [{ index, text: echo }] }
  for await (const { text, tokens, characters = 0, logprob, finish } of pieces) {
    counts[index] = tokens
    if (logprob !== undefined) {
      scored.push(logprob)
      offsets.push(tokens === 0 ? inPrompt : inAnswer)
      if (tokens === 0) inPrompt += characters
      else inAnswer += characters
    }
    if (text === '' && finish === undefined && scored.length < MAX_SCORED) {
      yield { choices: [] }
      continue
    }
    const logprobs = scored.length > 0 ? legacyLogprobs(scored, offsets) : null
    ;[scored, offsets] = [[], []]
    yield { choices: [{ index, text, logprobs, finish_reason: finish ?? null }] }
  }
}

/** One vector of length 1 per input. @param alive called after each */
export async function embeddings(
  engine: Engine,
  request: EmbeddingsRequest,
  alive: () => Promise<void>,
  signal: AbortSignal,
): Promise<EmbeddingsResult> {
  checkFields('embeddings', request)
  const { dimensions } = request
  const size = engine.model.embeddingVectorSize
  if (dimensions !== undefined && dimensions > size)
    throw new OpenAIError(`dimensions must be ${size} for this model`, 400, { param: 'dimensions' })
  const inputs = inputsOf(request).map((input) => tokensOf(engine, input, false, 'input'))
  const vectors: number[][] = []
  for (const tokens of inputs) {
    signal.throwIfAborted()
    vectors.push(normalised((await engine.embed(tokens, signal)).slice(0, dimensions)))
    await alive()
  }
  const tokens = inputs.reduce((sum, input) => sum + input.length, 0)
  return { embeddings: vectors, usage: { prompt_tokens: tokens } }
}

function inputsOf({ input }: EmbeddingsRequest): (string | number[])[] {
  if (typeof input === 'string') return [input]
  return typeof input[0] === 'number' ? [input as number[]] : (input as string[] | number[][])
}

function normalised(vector: readonly number[]): number[] {
  const length = Math.hypot(...vector)
  return length === 0 ? [...vector] : vector.map((value) => value / length)
}
