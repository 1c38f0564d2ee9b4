import { randomInt } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'
import type { LlamaGrammar } from 'node-llama-cpp'
import {
  type ChatCompletionRequest,
  type CompletionRequest,
  type EmbeddingsRequest,
  OpenAIError,
} from 'torchserve-ts'
import type { Sampling } from './generation.ts'
import type { SamplingDefaults } from './settings.ts'

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
function extraNumber(
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

const SEEDS = 2 ** 32 - 1
const MAX_TOP_K = 2 ** 31 - 1

/**
 * Sampling for one choice of an OpenAI request; `choice` makes the seeds differ.
 * @throws OpenAIError 400 that names the parameter
 */
export function samplingOf(
  request: ChatCompletionRequest | CompletionRequest,
  defaults: SamplingDefaults,
  choice: number,
  grammar?: LlamaGrammar,
): Sampling {
  const { stop, seed, max_completion_tokens: completionTokens } = request
  const maxTokens =
    (completionTokens as number | null | undefined) ?? request.max_tokens ?? defaults.maxTokens
  const penalty =
    extraNumber(request, 'repetition_penalty', Number.MIN_VALUE, 10) ??
    extraNumber(request, 'repeat_penalty', Number.MIN_VALUE, 10)
  return {
    maxTokens,
    minTokens: minTokens(request, maxTokens, grammar),
    temperature: request.temperature ?? defaults.temperature,
    // 0 would exclude every token; the smallest number leaves the most likely one.
    topP: Math.max(request.top_p ?? defaults.topP, 1e-6),
    // -1 also means all.
    topK: Math.max(0, extraNumber(request, 'top_k', -1, MAX_TOP_K) ?? defaults.topK),
    minP: extraNumber(request, 'min_p', 0, 1) ?? defaults.minP,
    // JSON must repeat its punctuation.
    repeatPenalty: penalty ?? (grammar === undefined ? defaults.repeatPenalty : 1),
    seed: seed == null ? randomInt(SEEDS) : (Math.abs(seed) + choice) % SEEDS,
    stop: stop == null ? [] : typeof stop === 'string' ? [stop] : stop,
    frequencyPenalty: request.frequency_penalty ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
    logitBias: biases(request.logit_bias),
    grammar,
  }
}

/** Tokens before which the text must not end. */
function minTokens(
  request: ChatCompletionRequest | CompletionRequest,
  maxTokens: number,
  grammar: LlamaGrammar | undefined,
): number {
  const endless = extraFlag(request, 'ignore_eos', false)
  const least = extraNumber(request, 'min_tokens', 0, Number.MAX_SAFE_INTEGER) ?? 0
  const param = endless ? 'ignore_eos' : 'min_tokens'
  if (grammar !== undefined && (endless || least > 0))
    throw new OpenAIError(`${param} is not supported with response_format or a forced call`, 400, { param })
  if (least > maxTokens)
    throw new OpenAIError(`min_tokens must be at most max_tokens (${maxTokens})`, 400, {
      param: 'min_tokens',
    })
  return endless ? Infinity : least
}

function biases(given: Record<string, number> | null | undefined): ReadonlyMap<number, number> | undefined {
  if (given == null) return undefined
  const entries = Object.entries(given).map(([token, bias]) => [Number(token), bias] as const)
  return new Map(
    entries.filter(([token, bias]) => Number.isInteger(token) && token >= 0 && Number.isFinite(bias)),
  )
}
