import { ServeError } from '../errors.ts'
import { isObject, ownValue, setOwn } from '../json.ts'
import type { StreamHead } from './chunks.ts'
import type {
  ChatChunk,
  ChatChoiceChunk,
  ChatLogprobs,
  Completion,
  CompletionChunk,
  CompletionLogprobs,
  FinishReason,
  ToolCall,
  ToolCallDelta,
  Usage,
} from './types.ts'

/** Maximum number of choices, and of tool calls per choice, in one response. */
const MAX_INDEX = 128

interface Collected {
  text: string[]
  refusal: string[]
  calls: ToolCall[]
  /** Fields of other names, such as `reasoning_content`. */
  more: Record<string, unknown>
  chatLogprobs: ChatLogprobs | undefined
  logprobs: CompletionLogprobs | undefined
  finish: FinishReason | undefined
}

/** Joins the chunks of a stream into the unary response for a client without `stream`. */
export class Collector {
  readonly #head: StreamHead
  readonly #choices: Collected[] = []
  #usage: Usage | undefined
  #fingerprint: unknown

  constructor(head: StreamHead) {
    this.#head = head
  }

  addChat(chunk: ChatChunk): void {
    this.#common(chunk)
    for (const choice of chunk.choices) this.#addDelta(this.#choice(choice.index), choice)
  }

  addText(chunk: CompletionChunk): void {
    this.#common(chunk)
    for (const { index, text, logprobs, finish_reason: finish } of chunk.choices) {
      const choice = this.#choice(index)
      choice.text.push(text)
      choice.finish = finish ?? choice.finish
      if (logprobs != null) choice.logprobs = joinLogprobs(choice.logprobs, logprobs)
    }
  }

  chat(): Completion {
    return this.#completion('chat.completion', (choice, index) => ({
      index,
      message: message(choice),
      logprobs: choice.chatLogprobs ?? null,
      finish_reason: choice.finish ?? 'stop',
    }))
  }

  text(): Completion {
    return this.#completion('text_completion', (choice, index) => ({
      index,
      text: choice.text.join(''),
      logprobs: choice.logprobs ?? null,
      finish_reason: choice.finish ?? 'stop',
    }))
  }

  #completion(
    object: string,
    choiceOf: (choice: Collected, index: number) => Record<string, unknown>,
  ): Completion {
    const { id, created, model } = this.#head
    const whole: Completion = { id, object, created, model, choices: this.#choices.map(choiceOf) }
    if (this.#usage !== undefined) whole.usage = this.#usage
    if (this.#fingerprint !== undefined) whole['system_fingerprint'] = this.#fingerprint
    return whole
  }

  #common(chunk: ChatChunk | CompletionChunk): void {
    if (chunk.usage != null) this.#usage = chunk.usage
    this.#fingerprint ??= chunk['system_fingerprint']
  }

  #addDelta(choice: Collected, { delta, logprobs, finish_reason: finish }: ChatChoiceChunk): void {
    const { role: _role, content, refusal, tool_calls: calls, ...more } = delta
    if (content != null) choice.text.push(content)
    if (refusal != null) choice.refusal.push(refusal)
    for (const call of calls ?? []) addCall(choice.calls, call)
    addFields(choice.more, more)
    if (logprobs?.content != null) {
      const content = [...(choice.chatLogprobs?.content ?? []), ...logprobs.content]
      choice.chatLogprobs = { content, refusal: null }
    }
    choice.finish = finish ?? choice.finish
  }

  #choice(given: number): Collected {
    const index = checkedIndex(given)
    while (this.#choices.length <= index) {
      this.#choices.push({
        text: [],
        refusal: [],
        calls: [],
        more: {},
        chatLogprobs: undefined,
        logprobs: undefined,
        finish: undefined,
      })
    }
    return this.#choices[index]!
  }
}

function message({ text, refusal, calls, more }: Collected): Record<string, unknown> {
  const content = text.join('')
  return {
    ...more,
    role: 'assistant',
    content: content === '' && (calls.length > 0 || refusal.length > 0) ? null : content,
    refusal: refusal.length > 0 ? refusal.join('') : null,
    ...(calls.length > 0 && { tool_calls: calls }),
  }
}

function addCall(calls: ToolCall[], { index: given, id, function: piece }: ToolCallDelta): void {
  const index = checkedIndex(given)
  while (calls.length <= index) {
    calls.push({ id: '', type: 'function', function: { name: '', arguments: '' } })
  }
  const call = calls[index]!
  if (id !== undefined) call.id = id
  if (piece?.name !== undefined) call.function.name += piece.name
  call.function.arguments += piece?.arguments ?? ''
}

/** Texts, lists and objects of several chunks are joined; of other values the last one counts. */
function addFields(all: Record<string, unknown>, more: Record<string, unknown>): void {
  for (const [name, value] of Object.entries(more)) {
    if (value != null) setOwn(all, name, joined(ownValue(all, name), value))
  }
}

function joined(before: unknown, value: unknown): unknown {
  if (typeof before === 'string' && typeof value === 'string') return before + value
  if (Array.isArray(before) && Array.isArray(value))
    return [...(before as unknown[]), ...(value as unknown[])]
  if (!isObject(before) || !isObject(value)) return value
  const all = { ...before }
  addFields(all, value)
  return all
}

function checkedIndex(index: number): number {
  if (Number.isInteger(index) && index >= 0 && index < MAX_INDEX) return index
  throw new ServeError(
    'INVALID_OUTPUT',
    `index must be a whole number from 0 to ${MAX_INDEX - 1}, not ${String(index)}`,
  )
}

function joinLogprobs(before: CompletionLogprobs | undefined, more: CompletionLogprobs): CompletionLogprobs {
  if (before === undefined) return more
  const tops = before.top_logprobs ?? more.top_logprobs
  return {
    tokens: [...before.tokens, ...more.tokens],
    token_logprobs: [...before.token_logprobs, ...more.token_logprobs],
    top_logprobs: tops === null ? null : [...(before.top_logprobs ?? []), ...(more.top_logprobs ?? [])],
    text_offset: [...before.text_offset, ...more.text_offset],
  }
}
