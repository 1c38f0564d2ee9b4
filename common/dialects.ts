import { splitHeaders } from './header-lines.ts'

/**
 * Beyond TorchServe's `handle`, a handler may speak these natively: the worker lists them in `loaded`, and a request for one of them
 * carries the header DIALECT_HEADER with its name. What a handler does not speak the frontend maps to what it does.
 */
export const DIALECTS = [
  'open-inference',
  /** Several messages of tensors for one request (predictStream). */
  'open-inference-stream',
  'openai-chat',
  'openai-completions',
  'openai-embeddings',
] as const

export type Dialect = (typeof DIALECTS)[number]

/** Reserved: no client can set it. */
export const DIALECT_HEADER = 'ts_dialect'

const MARK = `${DIALECT_HEADER}\n`

/** The dialect of a request to the worker; undefined: TorchServe's. */
export function dialectOf(headerLines: string): Dialect | undefined {
  if (!headerLines.includes(MARK)) return undefined
  const named = splitHeaders(headerLines)[DIALECT_HEADER]
  return DIALECTS.find((dialect) => dialect === named)
}
