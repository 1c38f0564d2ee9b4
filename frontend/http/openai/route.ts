import type { Dialect } from '../../../protocol/dialects.ts'

/** What a path of the OpenAI API asks for. */
export interface OpenAIRoute {
  operation: 'chat' | 'completions' | 'embeddings' | 'models'
  /** `models`: the one that is asked for; else the model that the path names (Seldon's way), which the body must not contradict. */
  model: string | undefined
}

/** The generating operations: which dialect of a handler answers them natively, and the path as a handler sees it (`url_path`). */
export const OPERATIONS = {
  chat: { dialect: 'openai-chat', path: 'v1/chat/completions' },
  completions: { dialect: 'openai-completions', path: 'v1/completions' },
  embeddings: { dialect: 'openai-embeddings', path: 'v1/embeddings' },
} as const satisfies Record<string, { dialect: Dialect; path: string }>

export type Operation = keyof typeof OPERATIONS

const PATHS: Readonly<Record<string, Operation>> = {
  'chat/completions': 'chat',
  completions: 'completions',
  embeddings: 'embeddings',
}

/**
 * The route of a path; undefined: it is none of the OpenAI API. Served under /v1, under /openai/v1 as KServe has it, and below one model's
 * infer and infer_stream as Seldon's OpenAI clients have it (spec 4.8, 5.1).
 */
export function openaiRoute(segments: readonly string[]): OpenAIRoute | undefined {
  if (segments[0] === 'openai') return segments[1] === 'v1' ? below(segments.slice(2)) : undefined
  if (segments[0] === 'v1') return below(segments.slice(1))
  return segments[0] === 'v2' ? belowModel(segments) : undefined
}

function below(rest: readonly string[]): OpenAIRoute | undefined {
  // The path is decoded as a whole before it is split, so the slashes of an id stand here as slashes.
  if (rest[0] === 'models') return { operation: 'models', model: rest.slice(1).join('/') || undefined }
  const operation = PATHS[rest.join('/')]
  return operation === undefined ? undefined : { operation, model: undefined }
}

function belowModel([, models, model, verb, ...rest]: readonly string[]): OpenAIRoute | undefined {
  if (models !== 'models' || !model || (verb !== 'infer' && verb !== 'infer_stream')) return undefined
  const operation = PATHS[rest.join('/')]
  return operation === undefined ? undefined : { operation, model }
}
