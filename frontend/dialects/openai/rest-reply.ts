import type { OpenAIRequest } from '../../../common/openai/request.ts'
import { ServeError } from '../../../common/errors.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { baseHeaders } from '../../edge/http/safe-response.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import { VERSION_HEADER } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { ResponseFacts } from './gen-ai.ts'
import { refusal } from './rest-errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'

/** The last event of every stream of this API. */
export const DONE = '[DONE]'

export function answerJson(call: HttpCall, status: number, body: Uint8Array): void {
  const { requestId, reply, span } = call
  const headers = baseHeaders(requestId, reply.keepsAlive(status))
  headers.push('content-type', 'application/json', ...versionHeaders(call), ...call.rateHeaders())
  if (span?.recording === true) {
    const facts = new ResponseFacts()
    facts.add(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
    span.set(facts.attributes)
  }
  reply.answer(status, headers, body)
}

/** Which version answers, where weights chose it: what handlers set as headers has no place here. */
export function versionHeaders({ weighedTo }: HttpCall): string[] {
  return weighedTo === undefined ? [] : [VERSION_HEADER, weighedTo]
}

/** An error has its own status before the first event. After it, it is an event, and the stream ends. */
export function failEvents(events: EventStream, error: ServeError): void {
  const { call } = events
  if (!call.reply.opened) {
    call.fail(error)
    return
  }
  call.logFailure(error)
  events.event(refusal(call, error).json)
  events.event(DONE)
  events.end()
}

/** The sink of one job whose response is this API's JSON, or its events. Subclasses render the items. */
abstract class EventSink implements ReplySink {
  protected readonly events: EventStream
  /** Whether the client asked for a stream. */
  protected readonly stream: boolean

  constructor(events: EventStream, { body }: OpenAIRequest) {
    this.events = events
    this.stream = body['stream'] === true
  }

  abstract whole(head: ReplyHead, body: Uint8Array): void
  abstract write(chunk: Uint8Array, from: number, to: number): boolean

  open(): void {
    this.events.open()
  }

  close(): void {
    this.events.event(DONE)
    this.events.end()
  }

  fail(error: ServeError): void {
    failEvents(this.events, error)
  }
}

/** Sends the responses of a native handler. Its worker sends complete responses, or complete chunks. */
export class NativeSink extends EventSink {
  whole(_head: ReplyHead, body: Uint8Array): void {
    if (!this.stream) {
      answerJson(this.events.call, 200, body)
      return
    }
    if (body.byteLength > 0) this.events.eventBytes(body, 0, body.byteLength)
    this.close()
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return from === to || this.events.eventBytes(chunk, from, to)
  }
}

/**
 * For handlers with `handle` that understand the API's bodies, such as TorchServe's vLLM handler
 * (ts/torch_handler/vllm_handler.py): `url_path` tells the operation, and the responses are the API's own,
 * with or without `data: ` in front.
 */
export class BodySink extends EventSink {
  whole(head: ReplyHead, body: Uint8Array): void {
    const text = Buffer.from(body).toString()
    const json = parseJson(text)
    if (isObject(json) && json['object'] === 'error') throw bodyRefusal(json, head)
    if (this.stream) this.#send(text, true)
    else answerJson(this.events.call, head.status, body)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#send(Buffer.from(chunk.subarray(from, to)).toString(), false)
  }

  #send(text: string, last: boolean): boolean {
    let room = true
    for (const event of text.split('\n\n')) {
      const data = event.replace(/^data: ?/, '').trim()
      if (data !== '' && data !== DONE) room = this.events.event(data)
    }
    if (last) this.close()
    return room
  }
}

/** vLLM's error object contains the status as `code`. */
function bodyRefusal(json: Record<string, unknown>, head: ReplyHead): ServeError {
  const given = Number(json['code'])
  const status = given >= 400 && given < 600 ? given : head.status >= 400 ? head.status : 400
  const message = typeof json['message'] === 'string' ? json['message'] : 'The handler refused the request'
  return new ServeError('HANDLER_REJECTED', message, { status })
}
