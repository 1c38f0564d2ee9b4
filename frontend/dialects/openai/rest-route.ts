import type { Operation } from '../../../common/openai/types.ts'

/** The operation of an OpenAI API path. */
export interface OpenAIRoute {
  /** `images`: image generation, which no handler supports; `unknown`: not a path of the API. */
  operation: Operation | 'models' | 'images' | 'health' | 'unknown'
  /**
   * For `models`: the requested model. Otherwise the model in the path (Seldon's form), which the body must
   * not contradict.
   */
  model: string | undefined
  /** Only with a model in the path; absent: the default version. */
  version?: string
}

const PATHS: ReadonlyMap<string, Operation | 'images'> = new Map([
  ['chat/completions', 'chat'],
  ['completions', 'completions'],
  ['embeddings', 'embeddings'],
  ['images/generations', 'images'],
])

const HEALTH: OpenAIRoute = { operation: 'health', model: undefined }

/**
 * The route of a path; undefined if it does not belong to the OpenAI API. The API is served under /v1, under
 * /openai/v1 (as in KServe), and below a model's or version's infer and infer_stream (for Seldon's OpenAI
 * clients), with /health as in vLLM and llama-server; see docs/openai.md.
 */
export function openaiRoute(segments: readonly string[]): OpenAIRoute | undefined {
  if (segments[0] === 'health') return segments.length === 1 ? HEALTH : undefined
  if (segments[0] === 'openai') return segments[1] === 'v1' ? below(segments.slice(2)) : undefined
  if (segments[0] === 'v1') return below(segments.slice(1))
  return segments[0] === 'v2' ? belowModel(segments) : undefined
}

function below(rest: readonly string[]): OpenAIRoute {
  // The whole path was decoded before it was split, so slashes of an id are separators here.
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
