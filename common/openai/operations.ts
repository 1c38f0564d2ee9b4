import type { NativeMethod } from '../handler-methods.ts'

/**
 * The generating operations of the API: which method of a handler answers them, and the path as a
 * handler sees it (`url_path`).
 */
export const OPERATIONS = {
  chat: { method: 'chatCompletions', path: 'v1/chat/completions' },
  completions: { method: 'completions', path: 'v1/completions' },
  embeddings: { method: 'embeddings', path: 'v1/embeddings' },
} as const satisfies Record<string, { method: NativeMethod; path: string }>

export type Operation = keyof typeof OPERATIONS
