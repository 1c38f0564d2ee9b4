import type { Dialect } from '../dialects.ts'

/**
 * The generating operations of the API: which dialect of a handler answers them natively, and the path as a
 * handler sees it (`url_path`).
 */
export const OPERATIONS = {
  chat: { dialect: 'openai-chat', path: 'v1/chat/completions' },
  completions: { dialect: 'openai-completions', path: 'v1/completions' },
  embeddings: { dialect: 'openai-embeddings', path: 'v1/embeddings' },
} as const satisfies Record<string, { dialect: Dialect; path: string }>

export type Operation = keyof typeof OPERATIONS
