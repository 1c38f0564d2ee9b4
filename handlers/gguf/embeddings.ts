import { OpenAIError, type EmbeddingsRequest, type EmbeddingsResult } from 'torchserve-ts'
import { tokensOf } from './completions.ts'
import type { Engine } from './engine.ts'
import { checkFields } from './openai-fields.ts'

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
