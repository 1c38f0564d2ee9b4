import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import { ChatStream, CompletionStream } from '../../../common/openai/chunks.ts'
import { Collector } from '../../../common/openai/collect.ts'
import { DEFAULT_CHAT_STOPS, defaultChatPrompt, otherThanText } from '../../../common/openai/default-chat.ts'
import type { ChatCompletionRequest, CompletionRequest, FinishReason } from '../../../common/openai/types.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import { type CommonRequest, JobGroup } from './job-group.ts'
import { answerJson, DONE, failEvents } from './rest-reply.ts'
import { StopFilter } from '../../../common/openai/stop-filter.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'

type TextRequest =
  { operation: 'chat'; body: ChatCompletionRequest } | { operation: 'completions'; body: CompletionRequest }

/**
 * The default mapping for handlers with `handle` (docs/openai.md): the part `data` is the prompt (for a chat:
 * the default template), the part `parameters` has the other fields as JSON, and the text of every item is a
 * delta. Each choice is a request to the handler.
 */
export function mapText(events: EventStream, common: CommonRequest, request: TextRequest): void {
  const { state, reply } = events.call
  const { n } = request.body
  const prompts = promptsOf(request).map((prompt) => ({ name: 'data', data: Buffer.from(prompt) }))
  const parameters = parametersPart(request.body)
  const jobs = new JobGroup(events.call, common)
  const count = n ?? 1
  checkChoices(prompts, parameters, count, state.settings.maxRequestSize)
  const run = new TextRun(events, request, jobs, prompts.length * count, state.settings.maxResponseSize)
  if (!reply.follow(jobs)) return
  const stops = stopsOf(request)
  for (let index = 0; index < prompts.length * count && !run.ended; index++) {
    const data = prompts[Math.floor(index / count)]!
    const sink = new TextSink(run, index, stops)
    sink.job = jobs.submit([data, parameters], sink)
  }
}

function promptsOf(request: TextRequest): string[] {
  if (request.operation === 'chat') return [chatPrompt(request.body)]
  const { prompt } = request.body
  const list: unknown[] = Array.isArray(prompt) ? prompt : [prompt]
  if (list.every((one) => typeof one === 'string')) return list
  throw new ServeError('INVALID_ARGUMENT', 'This model accepts strings, not token ids', { param: 'prompt' })
}

function chatPrompt({ messages }: ChatCompletionRequest): string {
  const param = otherThanText(messages)
  if (param !== undefined)
    throw new ServeError('INVALID_ARGUMENT', 'This model accepts only text parts', { param })
  return defaultChatPrompt(messages)
}

/** Each choice is a message to the handler: without a limit, 128 choices of a prompt of 6 MB are 800 MB. */
function checkChoices(prompts: InputPart[], { data }: InputPart, n: number, maxRequestSize: number): void {
  const bytes = prompts.reduce((sum, prompt) => sum + prompt.data.length + data.length, 0)
  if (bytes * n <= maxRequestSize) return
  const why = `The choices of a request must have at most ${maxRequestSize} bytes together (max_request_size): shorten the prompt, or ask for fewer`
  throw new ServeError('PAYLOAD_TOO_LARGE', why, { param: 'n' })
}

function stopsOf({ operation, body: { stop } }: TextRequest): string[] {
  const own = stop == null ? [] : typeof stop === 'string' ? [stop] : stop
  return operation === 'chat' ? [...own, ...DEFAULT_CHAT_STOPS] : own
}

/** Leaves out the fields that are in the prompt, and those that the server handles. */
function parametersPart(body: TextRequest['body']): InputPart {
  const { model: _model, messages: _m, prompt: _p, stream_options: _o, n: _n, ...rest } = body
  const data = Buffer.from(exactJson(rest))
  return { name: 'parameters', contentType: 'application/json', data }
}

/** Joins the texts of all choices into the unary response. */
class TextRun {
  readonly #events: EventStream
  readonly #jobs: JobGroup
  readonly #collector: Collector
  readonly #stream: ChatStream | CompletionStream | undefined
  readonly #chat: boolean
  #open: number
  #roomFor: number

  constructor(events: EventStream, request: TextRequest, jobs: JobGroup, choices: number, maxBytes: number) {
    const { model, stream, stream_options: options } = request.body
    this.#events = events
    this.#jobs = jobs
    this.#open = choices
    this.#roomFor = maxBytes
    this.#chat = request.operation === 'chat'
    const head = {
      id: `${this.#chat ? 'chatcmpl' : 'cmpl'}-${events.call.requestId}`,
      created: Math.floor(Date.now() / 1000),
      model,
      includeUsage: options?.include_usage === true,
    }
    this.#collector = new Collector(head)
    if (stream === true) this.#stream = this.#chat ? new ChatStream(head) : new CompletionStream(head)
  }

  get ended(): boolean {
    return this.#events.ended
  }

  text(index: number, text: string, finish: FinishReason | null): boolean {
    if (this.#stream !== undefined) return this.#send(index, text, finish)
    this.#roomFor -= text.length
    if (this.#roomFor < 0)
      throw new ServeError('RESPONSE_TOO_LARGE', 'The response exceeds max_response_size')
    if (this.#chat) this.#collector.addChat({ choices: [chatChoice(index, text, finish)] })
    else this.#collector.addText({ choices: [{ index, text, finish_reason: finish }] })
    return true
  }

  finished(): void {
    this.#open -= 1
    if (this.#open > 0 || this.#events.ended) return
    if (this.#stream === undefined) {
      const whole = this.#chat ? this.#collector.chat() : this.#collector.text()
      answerJson(this.#events.call, 200, Buffer.from(JSON.stringify(whole)))
      return
    }
    for (const chunk of this.#stream.end()) this.#events.event(JSON.stringify(chunk))
    this.#events.event(DONE)
    this.#events.end()
  }

  failed(error: ServeError): void {
    failEvents(this.#events, error)
    this.#jobs.cancel('failed')
  }

  #send(index: number, text: string, finish: FinishReason | null): boolean {
    const chunks =
      this.#stream instanceof ChatStream
        ? this.#stream.next({ choices: [chatChoice(index, text, finish)] })
        : this.#stream!.next({ choices: [{ index, text, finish_reason: finish }] })
    let room = true
    for (const chunk of chunks) room = this.#events.event(JSON.stringify(chunk))
    return room
  }
}

function chatChoice(index: number, text: string, finish: FinishReason | null) {
  const delta = text === '' && finish !== null ? {} : { content: text }
  return { index, delta, finish_reason: finish }
}

/**
 * The response of a handler to one choice, as text: decodes UTF-8 across items and cuts at the first stop
 * text.
 */
class TextSink implements ReplySink {
  /** Cancelled when a stop text was found. */
  job: Job | undefined
  readonly #owner: TextRun
  readonly #index: number
  readonly #filter: StopFilter
  readonly #decoder = new TextDecoder()
  #done = false

  constructor(owner: TextRun, index: number, stops: readonly string[]) {
    this.#owner = owner
    this.#index = index
    this.#filter = new StopFilter(stops)
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    if (head.status >= 400) {
      this.fail(refusal(head, body))
      return
    }
    this.#push(body)
    this.close()
  }

  open(): void {
    // The first item follows.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#push(chunk.subarray(from, to))
  }

  close(): void {
    if (this.#done) return
    const rest = this.#filter.push(this.#decoder.decode()) + this.#filter.flush()
    this.#finish(rest)
  }

  fail(error: ServeError): void {
    if (this.#done) return
    this.#done = true
    this.#owner.failed(error)
  }

  #push(bytes: Uint8Array): boolean {
    if (this.#done) return true
    const text = this.#filter.push(this.#decoder.decode(bytes, { stream: true }))
    if (this.#filter.stopped) {
      this.#finish(text)
      this.job?.cancel('failed')
      return true
    }
    return text === '' || this.#owner.text(this.#index, text, null)
  }

  #finish(text: string): void {
    // Last: what throws here fails the request.
    this.#owner.text(this.#index, text, 'stop')
    this.#owner.finished()
    this.#done = true
  }
}

/** A handler that sets an error status explains it in its body. */
function refusal({ status }: ReplyHead, body: Uint8Array): ServeError {
  const message = Buffer.from(body).toString().slice(0, 4_096)
  return new ServeError('HANDLER_REJECTED', message || 'The handler refused the request', { status })
}
