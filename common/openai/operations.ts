import type { NativeMethod } from '../handler-methods.ts'

/**
 * The generating operations of the API: the handler's method, and the path that the handler sees as
 * `url_path`.
 */
export const OPERATIONS = {
  chat: { method: 'chatCompletions', path: 'v1/chat/completions' },
  completions: { method: 'completions', path: 'v1/completions' },
  embeddings: { method: 'embeddings', path: 'v1/embeddings' },
} as const satisfies Record<string, { method: NativeMethod; path: string }>

export type Operation = keyof typeof OPERATIONS
