import type { OpenAIRequest } from '../../../common/openai/request.ts'
import type { ServeError } from '../../../common/errors.ts'
import type { Exchange } from '../../edge/http/exchange.ts'
import type { HttpReply } from '../../edge/http/http-reply.ts'
import { baseHeaders } from '../../edge/http/reply-headers.ts'
import type { EventStream } from '../../edge/http/sse.ts'
import { VERSION_HEADER } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { ResponseFacts } from './gen-ai.ts'
import { openaiFailure } from './rest-errors.ts'

/** The last event of every stream of this API. */
export const DONE = '[DONE]'

export function answerJson(reply: HttpReply, status: number, body: Uint8Array): void {
  const { exchange } = reply
  const headers = baseHeaders(exchange.requestId, reply.keepsAlive(status))
  headers.push('content-type', 'application/json', ...versionHeaders(exchange), ...exchange.rateHeaders())
  tellSpan(exchange, body)
  reply.answer(status, headers, body)
}

/** Which version answers, where weights chose it: what handlers say in headers has no place here. */
export function versionHeaders({ weighedTo }: Exchange): string[] {
  return weighedTo === undefined ? [] : [VERSION_HEADER, weighedTo]
}

function tellSpan({ span }: Exchange, body: Uint8Array): void {
  if (span?.recording !== true) return
  const facts = new ResponseFacts()
  facts.add(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString())
  span.set(facts.attributes)
}

/** An error has its own status before the first event. After it, it is an event, and the stream ends. */
export function failReply(events: EventStream, error: ServeError): void {
  const { reply } = events
  const { status, json, headers } = openaiFailure(error, reply.exchange.modelMeant(error))
  if (!reply.opened) {
    const base = baseHeaders(reply.exchange.requestId, false)
    reply.refuse(error, { status, json, headers: [...base, ...headers, ...reply.exchange.rateHeaders()] })
    return
  }
  reply.exchange.logFailure(error)
  events.event(json)
  events.event(DONE)
  events.end()
}

/** The sink of one job whose response is this API's JSON, or its events. Subclasses render the items. */
export abstract class EventSink implements ReplySink {
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
    failReply(this.events, error)
  }
}

/** Sends the responses of a native handler. Its worker sends complete responses, or complete chunks. */
export class NativeSink extends EventSink {
  whole(_head: ReplyHead, body: Uint8Array): void {
    if (!this.stream) {
      answerJson(this.events.reply, 200, body)
      return
    }
    if (body.byteLength > 0) this.events.eventBytes(body, 0, body.byteLength)
    this.close()
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return from === to || this.events.eventBytes(chunk, from, to)
  }
}
