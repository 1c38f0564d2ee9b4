import type { NativeMethod } from '../handler-methods.ts'

/**
 * The objects of the OpenAI API (OpenAI's API reference), as far as the server reads them. Requests and
 * responses may have more fields; they pass unchanged.
 */

export interface Usage {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
}

export type FinishReason = 'stop' | 'length' | 'tool_calls' | 'content_filter' | 'function_call'

export interface ContentPart {
  type: string
  text?: string
  [more: string]: unknown
}

export interface ToolCall {
  id: string
  type: 'function'
  function: { name: string; arguments: string }
}

export interface ChatMessage {
  role: string
  content?: string | ContentPart[] | null
  tool_calls?: ToolCall[]
  tool_call_id?: string
  name?: string
  [more: string]: unknown
}

export interface Tool {
  type: 'function'
  function: { name: string; description?: string; parameters?: Record<string, unknown>; strict?: boolean }
}

export type ToolChoice = 'none' | 'auto' | 'required' | { type: 'function'; function: { name: string } }

export type ResponseFormat =
  | { type: 'text' }
  | { type: 'json_object' }
  | { type: 'json_schema'; json_schema: { name?: string; schema?: Record<string, unknown> } }

/** What chat completions and completions have in common; checked by the frontend. */
export interface SamplingOptions {
  model: string
  stream?: boolean | null
  stream_options?: { include_usage?: boolean; [more: string]: unknown } | null
  n?: number | null
  max_tokens?: number | null
  stop?: string | string[] | null
  temperature?: number | null
  top_p?: number | null
  presence_penalty?: number | null
  frequency_penalty?: number | null
  logit_bias?: Record<string, number> | null
  seed?: number | null
  user?: string
  [more: string]: unknown
}

export interface ChatCompletionRequest extends SamplingOptions {
  messages: ChatMessage[]
  max_completion_tokens?: number | null
  logprobs?: boolean | null
  top_logprobs?: number | null
  tools?: Tool[] | null
  tool_choice?: ToolChoice | null
  parallel_tool_calls?: boolean
  response_format?: ResponseFormat | null
}

export interface CompletionRequest extends SamplingOptions {
  prompt: string | string[] | number[] | number[][]
  echo?: boolean | null
  suffix?: string | null
  best_of?: number | null
  logprobs?: number | null
}

export interface EmbeddingsRequest {
  model: string
  input: string | string[] | number[] | number[][]
  encoding_format?: 'float' | 'base64'
  dimensions?: number
  [more: string]: unknown
}

/** One token of `logprobs.content`. */
export interface TokenLogprob {
  token: string
  logprob: number
  bytes: number[] | null
  top_logprobs: { token: string; logprob: number; bytes: number[] | null }[]
}

export interface ChatLogprobs {
  content: TokenLogprob[] | null
  refusal?: TokenLogprob[] | null
}

/** `logprobs` of the legacy completions: one entry per token in each list. */
export interface CompletionLogprobs {
  tokens: string[]
  token_logprobs: (number | null)[]
  top_logprobs: (Record<string, number> | null)[] | null
  text_offset: number[]
}

export interface ToolCallDelta {
  index: number
  id?: string
  type?: 'function'
  function?: { name?: string; arguments?: string }
}

export interface ChatDelta {
  role?: string
  content?: string | null
  refusal?: string | null
  tool_calls?: ToolCallDelta[]
  [more: string]: unknown
}

export interface ChatChoiceChunk {
  index: number
  delta: ChatDelta
  logprobs?: ChatLogprobs | null
  finish_reason?: FinishReason | null
}

export interface CompletionChoiceChunk {
  index: number
  text: string
  logprobs?: CompletionLogprobs | null
  finish_reason?: FinishReason | null
}

/**
 * One chunk of a stream. The server adds what a handler's chunk lacks (id, object, created, model, roles,
 * nulls).
 */
export interface Chunk<C> {
  id?: string
  object?: string
  created?: number
  model?: string
  choices: C[]
  usage?: Usage | null
  [more: string]: unknown
}

export type ChatChunk = Chunk<ChatChoiceChunk>
export type CompletionChunk = Chunk<CompletionChoiceChunk>

/** A unary response. */
export interface Completion {
  id?: string
  object?: string
  choices: Record<string, unknown>[]
  usage?: Usage | null
  [more: string]: unknown
}

/** Vectors, one per input, or the complete response of the API (`object: 'list'`). */
export type EmbeddingsResult =
  | { embeddings: (readonly number[] | Float32Array)[]; usage?: { prompt_tokens: number } }
  | { object: 'list'; [more: string]: unknown }

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
