import type { Token } from 'node-llama-cpp'
import { OpenAIError, type CompletionChunk, type CompletionRequest, type TokenLogprob } from 'torchserve-ts'
import { usageOf } from './chat.ts'
import type { Engine } from './engine.ts'
import type { Piece } from './generation.ts'
import { legacyLogprobs } from './logprobs.ts'
import { merge } from './merge.ts'
import { checkFields } from './openai-fields.ts'
import { samplingOf } from './sampling.ts'
import type { SamplingDefaults } from './settings.ts'

/** The OpenAI API's default of max_tokens. */
const DEFAULT_TOKENS = 16

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
  const prompts = promptsOf(request).map((prompt) => tokensOf(engine, prompt))
  for (const prompt of prompts) engine.roomAfter(prompt.length)
  const n = request.n ?? 1
  const counts: number[] = []
  const choices = prompts.flatMap((prompt, i) =>
    Array.from({ length: n }, (_, k) => {
      const index = i * n + k
      const sampling = {
        ...samplingOf(request, { ...defaults, maxTokens: DEFAULT_TOKENS }, index),
        ...topOf(request),
      }
      const echo = request.echo === true ? engine.model.detokenize(prompt) : ''
      return choice(index, engine.generate(prompt, sampling, signal), echo, counts)
    }),
  )
  yield* merge(choices)
  const asked = prompts.reduce((sum, prompt) => sum + prompt.length, 0)
  const made = counts.reduce((sum, count) => sum + count, 0)
  yield { choices: [], usage: usageOf(asked, made) }
}

function promptsOf({ prompt }: CompletionRequest): (string | number[])[] {
  if (typeof prompt === 'string') return [prompt]
  return typeof prompt[0] === 'number' ? [prompt as number[]] : (prompt as string[] | number[][])
}

/** @throws OpenAIError 400 for an empty prompt, and for tokens outside the model's vocabulary */
export function tokensOf(engine: Engine, prompt: string | number[], param = 'prompt'): Token[] {
  if (typeof prompt === 'string') {
    const tokens = engine.promptTokens(prompt)
    if (tokens.length > 0) return tokens
    throw new OpenAIError(`${param} must not be empty`, 400, { param })
  }
  const known = engine.vocabularySize
  if (prompt.some((token) => token >= known))
    throw new OpenAIError(`${param} must contain only tokens of the model`, 400, { param })
  return prompt as Token[]
}

function topOf({ logprobs }: CompletionRequest): { topLogprobs?: number } {
  return logprobs == null ? {} : { topLogprobs: logprobs }
}

async function* choice(
  index: number,
  pieces: AsyncGenerator<Piece>,
  echo: string,
  counts: number[],
): AsyncGenerator<CompletionChunk> {
  let told: TokenLogprob[] = []
  let offset = echo.length
  if (echo !== '') yield { choices: [{ index, text: echo }] }
  for await (const { text, tokens, logprob, finish } of pieces) {
    counts[index] = tokens
    if (logprob !== undefined) told.push(logprob)
    if (text === '' && finish === undefined) continue
    const logprobs = told.length > 0 ? legacyLogprobs(told, offset) : null
    for (const { token } of told) offset += token.length
    told = []
    yield { choices: [{ index, text, logprobs, finish_reason: finish ?? null }] }
  }
}
