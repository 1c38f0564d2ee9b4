import type { Operation } from '../../../common/openai/operations.ts'

/** What a path of the OpenAI API asks for. */
export interface OpenAIRoute {
  /** `images`: a path of the API that no handler here answers; `unknown`: none that the server knows. */
  operation: Operation | 'models' | 'images' | 'unknown'
  /**
   * `models`: the one that is asked for; else the model that the path names (Seldon's way), which the body
   * must not contradict.
   */
  model: string | undefined
  /** Only beside a model that the path names; absent: the default version. */
  version?: string
}

const PATHS: ReadonlyMap<string, Operation | 'images'> = new Map([
  ['chat/completions', 'chat'],
  ['completions', 'completions'],
  ['embeddings', 'embeddings'],
  ['images/generations', 'images'],
])

/**
 * The route of a path; undefined: it does not belong to the OpenAI API. Served under /v1, under /openai/v1 as
 * KServe has it, and below one model's (or version's) infer and infer_stream as Seldon's OpenAI clients have
 * it (docs/openai.md).
 */
export function openaiRoute(segments: readonly string[]): OpenAIRoute | undefined {
  if (segments[0] === 'openai') return segments[1] === 'v1' ? below(segments.slice(2)) : undefined
  if (segments[0] === 'v1') return below(segments.slice(1))
  return segments[0] === 'v2' ? belowModel(segments) : undefined
}

function below(rest: readonly string[]): OpenAIRoute {
  // The path is decoded as a whole before it is split, so the slashes of an id stand here as slashes.
  if (rest[0] === 'models') return { operation: 'models', model: rest.slice(1).join('/') || undefined }
  return { operation: PATHS.get(rest.join('/')) ?? 'unknown', model: undefined }
}

function belowModel([, models, model, ...rest]: readonly string[]): OpenAIRoute | undefined {
  if (models !== 'models' || !model) return undefined
  const version = rest[0] === 'versions' && rest[1] !== '' ? rest[1] : undefined
  const [verb, ...named] = version === undefined ? rest : rest.slice(2)
  if (verb !== 'infer' && verb !== 'infer_stream') return undefined
  const operation = PATHS.get(named.join('/'))
  return operation === undefined ? undefined : { operation, model, version }
}
