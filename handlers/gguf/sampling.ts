import { randomInt } from 'node:crypto'
import type { ChatCompletionRequest, CompletionRequest } from 'torchserve-ts'
import type { Sampling } from './generation.ts'
import type { SamplingDefaults } from './settings.ts'

const SEEDS = 2 ** 32 - 1

/** Sampling for one choice of an OpenAI request; `choice` makes the seeds differ. */
export function samplingOf(
  request: ChatCompletionRequest | CompletionRequest,
  defaults: SamplingDefaults,
  choice: number,
): Sampling {
  const { stop, seed } = request
  return {
    ...defaults,
    maxTokens: request.max_tokens ?? defaults.maxTokens,
    temperature: request.temperature ?? defaults.temperature,
    // 0 would exclude every token; the smallest number leaves the most likely one.
    topP: Math.max(request.top_p ?? defaults.topP, 1e-6),
    seed: seed == null ? randomInt(SEEDS) : (Math.abs(seed) + choice) % SEEDS,
    stop: stop == null ? [] : typeof stop === 'string' ? [stop] : stop,
    frequencyPenalty: request.frequency_penalty ?? 0,
    presencePenalty: request.presence_penalty ?? 0,
    logitBias: biases(request.logit_bias),
  }
}

function biases(given: Record<string, number> | null | undefined): ReadonlyMap<number, number> | undefined {
  if (given == null) return undefined
  const entries = Object.entries(given).map(([token, bias]) => [Number(token), bias] as const)
  return new Map(
    entries.filter(([token, bias]) => Number.isInteger(token) && token >= 0 && Number.isFinite(bias)),
  )
}
