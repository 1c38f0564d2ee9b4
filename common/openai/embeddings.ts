import type { EmbeddingsResult } from './types.ts'

type Vector = readonly number[] | Float32Array

/**
 * The response of /v1/embeddings. With `encoding_format: base64` a vector is little-endian float32 in base64.
 */
export function embeddingsAnswer(
  result: EmbeddingsResult,
  model: string,
  format: 'float' | 'base64',
): Record<string, unknown> {
  if ('object' in result) return result
  const tokens = result.usage?.prompt_tokens
  return {
    object: 'list',
    data: result.embeddings.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: format === 'base64' ? base64(vector) : [...vector],
    })),
    model,
    ...(tokens !== undefined && { usage: { prompt_tokens: tokens, total_tokens: tokens } }),
  }
}

function base64(vector: Vector): string {
  const bytes = Buffer.allocUnsafe(vector.length * 4)
  vector.forEach((value, i) => bytes.writeFloatLE(value, i * 4))
  return bytes.toString('base64')
}
