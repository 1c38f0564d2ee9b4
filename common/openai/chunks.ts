import { setOwn } from '../json.ts'
import { isWellFormed, WholeTexts } from '../texts.ts'
import type { ChatChunk, ChatChoiceChunk, Chunk, CompletionChunk, Usage } from './types.ts'

/** What all chunks of one stream share. */
export interface StreamHead {
  id: string
  /** Seconds since the epoch. */
  created: number
  model: string
  /** stream_options.include_usage */
  includeUsage: boolean
}

/** Maximum number of choices in one response; the OpenAI API allows no more (`n` is at most 128). */
const MAX_CHOICES = 128

/** A text of a choice: its name in the choice, and its piece in a chunk. */
type Piece = [name: string, text: string]

type Kind = 'chat.completion.chunk' | 'text_completion'

/**
 * Completes the chunks of a handler to a stream as OpenAI's API reference describes it
 * (chat.completion.chunk): every chunk has the same id, created and model; the first delta of each choice has
 * the role; `finish_reason` is null until the end and is set exactly once; usage comes in a last chunk
 * without choices, only on request. Complete chunks pass unchanged.
 */
abstract class ChunkStream<T extends Chunk<{ index: number; finish_reason?: string | null }>> {
  protected readonly seen = new Map<number, { finished: boolean }>()
  /** Choices in which half a character waits. */
  readonly #texts = new Map<number, WholeTexts<string>>()
  #head: StreamHead
  readonly #kind: Kind
  #usage: Usage | undefined

  constructor(kind: Kind, head: StreamHead) {
    this.#kind = kind
    this.#head = head
  }

  /** The chunks to send for one chunk of the handler; usually that chunk alone. */
  next(chunk: T): T[] {
    if (chunk.usage != null) this.#usage = chunk.usage
    if (chunk.choices.length === 0) return []
    const open = chunk.choices.filter((choice) => this.seen.get(choice.index)?.finished !== true)
    if (open.length === 0) return []
    const choices = open.map((choice) => this.#whole(choice))
    if (chunk.id !== undefined) this.#adopt(chunk)
    const made = choices.flatMap((choice) => [...this.#before(choice.index), ...this.complete(choice)])
    for (const choice of choices) this.seen.set(choice.index, { finished: choice.finish_reason != null })
    const more = { ...chunk, usage: undefined }
    return this.#group(made).map((group) => this.#chunk(group, more))
  }

  /**
   * A remote provider sets its own id, time and model. Chunks that the server adds at the end use them too.
   */
  #adopt({ id = this.#head.id, created = this.#head.created, model = this.#head.model }: T): void {
    this.#head = { ...this.#head, id, created, model }
  }

  /** Clients append choices to a list, so the first chunks of all choices come in index order. */
  #before(index: number): T['choices'][number][] {
    const missing: T['choices'][number][] = []
    for (let lower = this.seen.size; lower < Math.min(index, MAX_CHOICES); lower++) {
      if (this.seen.has(lower)) continue
      this.seen.set(lower, { finished: false })
      missing.push(this.begin(lower))
    }
    return missing
  }

  /** The chunks that are missing at the end: finish reasons and usage. */
  end(): T[] {
    const open = [...this.seen].filter(([, { finished }]) => !finished)
    const last = open.map(([index]) => this.#chunk([this.#whole(this.finish(index))]))
    if (this.#head.includeUsage && this.#usage !== undefined) {
      last.push({ ...this.#chunk([]), usage: this.#usage })
    }
    return last
  }

  /** The choice with whole characters: half of one at the end of a text waits for the next chunk. */
  #whole(choice: T['choices'][number]): T['choices'][number] {
    const waiting = this.#texts.get(choice.index)
    const pieces = this.pieces(choice)
    if (waiting === undefined && pieces.every(([, text]) => isWellFormed(text))) return choice
    const texts = waiting ?? new WholeTexts()
    const whole = new Map(pieces.map(([name, text]): Piece => [name, texts.next(name, text)]))
    if (choice.finish_reason != null)
      for (const [name, rest] of texts.end()) whole.set(name, (whole.get(name) ?? '') + rest)
    if (texts.waits) this.#texts.set(choice.index, texts)
    else this.#texts.delete(choice.index)
    return this.withPieces(choice, [...whole])
  }

  protected abstract pieces(choice: T['choices'][number]): Piece[]
  /** The choice with these texts instead of its own. */
  protected abstract withPieces(choice: T['choices'][number], pieces: Piece[]): T['choices'][number]
  /** Completes a choice. Returns more than one if the role comes in a chunk of its own. */
  protected abstract complete(choice: T['choices'][number]): T['choices'][number][]
  protected abstract finish(index: number): T['choices'][number]
  /** The first chunk of a new choice. */
  protected abstract begin(index: number): T['choices'][number]

  /** Two entries for the same choice become two chunks. */
  #group(choices: T['choices'][number][]): T['choices'][number][][] {
    const groups: T['choices'][number][][] = []
    for (const choice of choices) {
      const group = groups.find((some) => some.every(({ index }) => index !== choice.index))
      if (group === undefined) groups.push([choice])
      else group.push(choice)
    }
    return groups
  }

  #chunk(choices: T['choices'], more: Record<string, unknown> = {}): T {
    const { id, created, model, includeUsage } = this.#head
    const own = { id, object: this.#kind, created, model, ...more, choices }
    return { ...own, usage: includeUsage ? null : undefined } as unknown as T
  }
}

/** Begins the name of the arguments of a tool call; its index follows. */
const CALL = 'tool_calls '

/** The stream of a chat completion. */
export class ChatStream extends ChunkStream<ChatChunk> {
  constructor(head: StreamHead) {
    super('chat.completion.chunk', head)
  }

  protected complete(choice: ChatChoiceChunk): ChatChoiceChunk[] {
    const whole = {
      ...choice,
      logprobs: choice.logprobs ?? null,
      finish_reason: choice.finish_reason ?? null,
    }
    if (this.seen.has(choice.index) || choice.delta.role !== undefined) return [whole]
    const delta =
      choice.delta.tool_calls === undefined
        ? { role: 'assistant', content: '' }
        : { role: 'assistant', content: null }
    const first = { index: choice.index, delta, logprobs: null, finish_reason: null }
    return isEmpty(choice) ? [first] : [first, whole]
  }

  protected pieces({ delta }: ChatChoiceChunk): Piece[] {
    const pieces = Object.entries(delta).filter((entry): entry is Piece => typeof entry[1] === 'string')
    for (const { index, function: call } of delta.tool_calls ?? [])
      if (call?.arguments !== undefined) pieces.push([CALL + String(index), call.arguments])
    return pieces
  }

  protected withPieces(choice: ChatChoiceChunk, pieces: Piece[]): ChatChoiceChunk {
    const delta = { ...choice.delta }
    const calls = new Map((delta.tool_calls ?? []).map((call) => [CALL + String(call.index), call]))
    for (const [name, text] of pieces) {
      if (!name.startsWith(CALL)) setOwn<unknown>(delta, name, text)
      else {
        const call = calls.get(name) ?? { index: Number(name.slice(CALL.length)) }
        calls.set(name, { ...call, function: { ...call.function, arguments: text } })
      }
    }
    if (calls.size > 0) delta.tool_calls = [...calls.values()]
    return { ...choice, delta }
  }

  protected begin(index: number): ChatChoiceChunk {
    return { index, delta: { role: 'assistant', content: '' }, logprobs: null, finish_reason: null }
  }

  protected finish(index: number): ChatChoiceChunk {
    return { index, delta: {}, logprobs: null, finish_reason: 'stop' }
  }
}

/** The stream of a legacy completion. */
export class CompletionStream extends ChunkStream<CompletionChunk> {
  constructor(head: StreamHead) {
    super('text_completion', head)
  }

  protected complete(choice: CompletionChunk['choices'][number]): CompletionChunk['choices'] {
    return [{ ...choice, logprobs: choice.logprobs ?? null, finish_reason: choice.finish_reason ?? null }]
  }

  protected pieces({ text }: CompletionChunk['choices'][number]): Piece[] {
    return [['text', text]]
  }

  protected withPieces(
    choice: CompletionChunk['choices'][number],
    [[, text] = ['', '']]: Piece[],
  ): CompletionChunk['choices'][number] {
    return { ...choice, text }
  }

  protected begin(index: number): CompletionChunk['choices'][number] {
    return { index, text: '', logprobs: null, finish_reason: null }
  }

  protected finish(index: number): CompletionChunk['choices'][number] {
    return { index, text: '', logprobs: null, finish_reason: 'stop' }
  }
}

function isEmpty({ delta, finish_reason: finish, logprobs }: ChatChoiceChunk): boolean {
  const { content, ...more } = delta
  return (content ?? '') === '' && finish == null && logprobs == null && Object.keys(more).length === 0
}
