import { randomInt } from 'node:crypto'
import type { LlamaGrammar } from 'node-llama-cpp'
import { OpenAIError, type ChatCompletionRequest, type CompletionRequest } from 'torchserve-ts'
import type { Sampling } from './generation.ts'
import { extraFlag, extraNumber } from './openai-fields.ts'
import type { SamplingDefaults } from './settings.ts'

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
