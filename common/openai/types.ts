/**
 * The OpenAI API's objects as far as the server looks into them (spec/open-inference-and-openai.md, chapter 5). Requests and answers may
 * hold more: it is passed on as it came.
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

/** What both kinds of generation have in common; checked by the frontend. */
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

/** One chunk of a stream. What is left out of a handler's chunk (id, object, created, model, roles, nulls) is filled in. */
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

/** A whole answer. */
export interface Completion {
  id?: string
  object?: string
  choices: Record<string, unknown>[]
  usage?: Usage | null
  [more: string]: unknown
}

/** Vectors, one per input, or the whole answer as the API has it (`object: 'list'`). */
export type EmbeddingsResult =
  | { embeddings: (readonly number[] | Float32Array)[]; usage?: { prompt_tokens: number } }
  | { object: 'list'; [more: string]: unknown }
