import type { LlamaGrammar } from 'node-llama-cpp'
import {
  type ChatChunk,
  type ChatCompletionRequest,
  OpenAIError,
  otherThanText,
  type TokenLogprob,
} from 'torchserve-ts'
import type { ChatPrompt, ChatPrompts } from './chat-prompts.ts'
import { ChoiceReader } from './choice-reader.ts'
import type { Engine } from './engine.ts'
import type { Piece, Sampling } from './generation.ts'
import { checkFields, samplingOf } from './openai-fields.ts'
import type { SamplingDefaults } from './settings.ts'
import { callBeginning, callGrammar, formatGrammar, toolUse, type ToolUse, withToolsTold } from './tools.ts'

/** The chunks of a chat completion. Generates its choices concurrently. */
export async function* chat(
  engine: Engine,
  prompts: ChatPrompts,
  defaults: SamplingDefaults,
  request: ChatCompletionRequest,
  signal: AbortSignal,
): AsyncGenerator<ChatChunk> {
  checkFields('chat', request)
  const other = otherThanText(request.messages)
  if (other !== undefined) throw new OpenAIError('This model supports only text', 400, { param: other })
  const use = toolUse(request)
  const prompt = promptOf(prompts, request, use)
  const beginning = callBeginning(use)
  const tokens =
    beginning === '' ? prompt.tokens : [...prompt.tokens, ...engine.model.tokenize(` ${beginning}`)]
  engine.roomAfter(tokens.length)
  const rules = await grammarOf(engine, request, use)
  const counts: number[] = []
  const choices = Array.from({ length: request.n ?? 1 }, (_, index) => {
    const sampling = chatSampling(request, defaults, prompt, rules, index)
    const pieces = engine.generate(tokens, sampling, signal)
    const reader = new ChoiceReader(use, beginning, prompt.thinks, request.parallel_tool_calls !== false)
    return choice(index, pieces, reader, counts)
  })
  yield* merge(choices)
  const completion = counts.reduce((sum, count) => sum + count, 0)
  yield { choices: [], usage: usageOf(tokens.length, completion) }
}

export function usageOf(prompt: number, completion: number) {
  return { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion }
}

function promptOf(prompts: ChatPrompts, { messages }: ChatCompletionRequest, { tools }: ToolUse): ChatPrompt {
  const prompt = prompts.render(messages, tools)
  return prompt.toolsTold || tools.length === 0 ? prompt : prompts.render(withToolsTold(messages, tools), [])
}

async function grammarOf(
  engine: Engine,
  { response_format: format, tools: all }: ChatCompletionRequest,
  { tools, forced }: ToolUse,
): Promise<LlamaGrammar | undefined> {
  if (forced) return callGrammar(engine, tools, all ?? [])
  if (format == null || format.type === 'text') return undefined
  if (format.type === 'json_object' || format.type === 'json_schema') return formatGrammar(engine, format)
  const param = 'response_format.type'
  throw new OpenAIError(`${param} must be text, json_object or json_schema`, 400, { param })
}

function chatSampling(
  request: ChatCompletionRequest,
  defaults: SamplingDefaults,
  prompt: ChatPrompt,
  rules: LlamaGrammar | undefined,
  index: number,
): Sampling {
  const sampling = samplingOf(request, defaults, index, rules)
  return {
    ...sampling,
    stop: [...sampling.stop, ...prompt.stops],
    ...(request.logprobs === true && { topLogprobs: request.top_logprobs ?? 0 }),
  }
}

async function* choice(
  index: number,
  pieces: AsyncGenerator<Piece>,
  reader: ChoiceReader,
  counts: number[],
): AsyncGenerator<ChatChunk> {
  let logprobs: TokenLogprob[] = []
  for await (const { text, tokens, logprob, finish } of pieces) {
    counts[index] = tokens
    if (logprob !== undefined && logprob.logprob !== null) logprobs.push(logprob)
    const deltas = finish === undefined ? reader.push(text) : reader.end(text, finish === 'length')
    if (deltas.length === 0 && finish === undefined) yield { choices: [] }
    for (const delta of deltas) {
      yield {
        choices: [
          { index, delta, logprobs: logprobs.length > 0 ? { content: logprobs, refusal: null } : null },
        ],
      }
      logprobs = []
    }
    if (finish === undefined) continue
    const reason = finish === 'stop' && reader.called ? 'tool_calls' : finish
    const last = logprobs.length > 0 ? { content: logprobs, refusal: null } : null
    yield { choices: [{ index, delta: {}, logprobs: last, finish_reason: reason }] }
  }
}

/**
 * Merges iterators, in the order in which items arrive. Requests an iterator's next item when its last one
 * was taken. Ends all iterators when one fails or the reader stops.
 */
export async function* merge<T>(iterators: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const ask = async (place: number) => ({ place, result: await iterators[place]!.next() })
  const pending = new Map(iterators.map((_iterator, place) => [place, ask(place)]))
  try {
    while (pending.size > 0) {
      const { place, result } = await Promise.race(pending.values())
      if (result.done === true) {
        pending.delete(place)
        continue
      }
      yield result.value
      pending.set(place, ask(place))
    }
  } finally {
    for (const asked of pending.values()) asked.catch(() => undefined)
    await Promise.allSettled(iterators.map((iterator) => iterator.return(undefined)))
  }
}
