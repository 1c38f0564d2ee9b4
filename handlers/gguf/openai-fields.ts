import { isDeepStrictEqual } from 'node:util'
import {
  OpenAIError,
  type ChatCompletionRequest,
  type CompletionRequest,
  type EmbeddingsRequest,
} from 'torchserve-ts'

type Request = ChatCompletionRequest | CompletionRequest | EmbeddingsRequest

/** Fields that have no effect on the answer. */
const IDLE = [
  ...['user', 'store', 'metadata', 'service_tier', 'safety_identifier', 'request_id', 'priority'],
  ...['prompt_cache_key', 'prompt_cache_retention', 'cache_prompt', 'prediction'],
]
const GENERATING = [
  ...['model', 'stream', 'stream_options', 'n', 'max_tokens', 'temperature', 'top_p', 'top_k', 'min_p'],
  ...['presence_penalty', 'frequency_penalty', 'repeat_penalty', 'repetition_penalty', 'logit_bias'],
  ...['seed', 'stop', 'ignore_eos', 'min_tokens', 'logprobs', ...IDLE],
]
/** Fields that the handler reads. */
const READ = {
  chat: [
    ...['messages', 'max_completion_tokens', 'top_logprobs', 'response_format', ...GENERATING],
    ...['tools', 'tool_choice', 'parallel_tool_calls'],
  ],
  completions: ['prompt', 'parse_special', 'echo', ...GENERATING],
  embeddings: ['model', 'input', 'encoding_format', 'dimensions', ...IDLE],
}
/** Values with which fields that the handler does not support change nothing. */
const NEUTRAL: ReadonlyMap<string, unknown> = new Map<string, unknown>([
  ['suffix', ''],
  ['echo', false],
  ['best_of', 1],
  ['use_beam_search', false],
  ['length_penalty', 1],
  ['typical_p', 1],
  ['stop_token_ids', []],
  ['skip_special_tokens', true],
  ['spaces_between_special_tokens', true],
  ['include_stop_str_in_output', false],
  ['add_generation_prompt', true],
  ['continue_final_message', false],
  ['chat_template_kwargs', {}],
  ['functions', []],
  ['modalities', ['text']],
])

/**
 * A field without effect would give another answer than its client wants.
 * @throws OpenAIError 400 that names a field that the handler does not support
 */
export function checkFields(operation: keyof typeof READ, request: Request): void {
  for (const [name, value] of Object.entries(request)) {
    if (READ[operation].includes(name) || value == null) continue
    if (name === 'best_of' && value === request['n']) continue
    if (NEUTRAL.has(name) && isDeepStrictEqual(value, NEUTRAL.get(name))) continue
    throw new OpenAIError(`${name.slice(0, 80)} is not supported by this model`, 400, { param: name })
  }
}

/** A number of a request that the OpenAI API does not have. @throws OpenAIError 400 that names it */
export function extraNumber(
  request: Request,
  param: 'top_k' | 'min_p' | 'repeat_penalty' | 'repetition_penalty' | 'min_tokens',
  min: number,
  max: number,
): number | undefined {
  const value = request[param] ?? undefined
  const whole = param === 'top_k' || param === 'min_tokens'
  if (value === undefined) return undefined
  if (typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value)))
    return value
  const message = `${param} must be a ${whole ? 'whole ' : ''}number from ${min} to ${max}`
  throw new OpenAIError(message, 400, { param })
}

/** The same for a flag. */
export function extraFlag(request: Request, param: 'ignore_eos' | 'parse_special', absent: boolean): boolean {
  const value = request[param] ?? absent
  if (typeof value === 'boolean') return value
  throw new OpenAIError(`${param} must be true or false`, 400, { param })
}
