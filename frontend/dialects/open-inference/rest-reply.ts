import { gzip } from 'node:zlib'
import { ServeError } from '../../../common/errors.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import type { AnswerFacts } from './answers.ts'
import type { StreamTarget, UnaryTarget } from './replies.ts'
import type { HttpReply } from '../../edge/http/http-reply.ts'
import { servesManagement } from '../../edge/http/listener-kind.ts'
import { addHandlerHeaders, baseHeaders } from '../../edge/http/reply-headers.ts'
import { EventStream } from '../../edge/http/sse.ts'
import { errorText } from './error-text.ts'
import { errorAnswer } from './rest-errors.ts'
import type { WireAnswer } from './rest-response.ts'

/** Bytes; a shorter body is not worth compressing. */
const MIN_GZIP_BYTES = 500

/** Sends a unary response, compressed if the client accepts that. */
export class InferResponse implements UnaryTarget<WireAnswer> {
  readonly #reply: HttpReply
  readonly #gzip: boolean

  constructor(reply: HttpReply, takesGzip: boolean) {
    this.#reply = reply
    this.#gzip = takesGzip
  }

  answer(head: ReplyHead, { contentType, body, headers }: WireAnswer): void {
    const all = headersFor(this.#reply, head.status, contentType)
    all.push(...headers)
    addOwnHeaders(all, head, this.#reply)
    if (!this.#gzip || body.byteLength < MIN_GZIP_BYTES) {
      this.#reply.answer(head.status, all, body)
      return
    }
    gzip(body, (error, packed) => {
      try {
        if (error !== null) throw error
        this.#reply.answer(head.status, [...all, ...PACKED], packed)
      } catch (thrown) {
        this.fail(ServeError.from(thrown))
      }
    })
  }

  fail(error: ServeError): void {
    refuse(this.#reply, error)
  }
}

const PACKED = ['Content-Encoding', 'gzip', 'Vary', 'Accept-Encoding']

/**
 * Sends one event per response, as in the protocol's generate_stream. A failure after the first event is an
 * event too, and ends the stream.
 */
export class InferEvents implements StreamTarget<string> {
  readonly #events: EventStream
  readonly #facts: AnswerFacts

  constructor(reply: HttpReply, facts: AnswerFacts) {
    this.#events = new EventStream(reply)
    this.#facts = facts
  }

  item(head: ReplyHead, event: string): boolean {
    this.#open(head)
    return this.#events.event(event)
  }

  end(head: ReplyHead): void {
    this.#open(head)
    this.#events.end()
  }

  fail(error: ServeError): void {
    const { reply } = this.#events
    const { id, modelName } = this.#facts
    if (!reply.opened) {
      refuse(reply, error)
      return
    }
    reply.exchange.logFailure(error)
    this.#events.event(JSON.stringify({ error: errorText(error), id, model_name: modelName }))
    this.#events.end()
  }

  #open(head: ReplyHead): void {
    if (this.#events.reply.opened) return
    const headers: string[] = []
    addOwnHeaders(headers, head, this.#events.reply)
    this.#events.open(headers)
  }
}

/** The reply to a request that is not an inference. */
export type Told = readonly [status: number, body: object]

/** Sends JSON once it is available. */
export function tell(reply: HttpReply, telling: Promise<Told>): void {
  telling.then(
    ([status, body]) => {
      reply.answer(status, headersFor(reply, status, 'application/json'), Buffer.from(JSON.stringify(body)))
    },
    (thrown: unknown) => {
      refuse(reply, ServeError.from(thrown))
    },
  )
}

/** Sends the failure as a plain response; nothing may have been sent before. */
export function refuse(reply: HttpReply, error: ServeError): void {
  const { status, json, headers } = errorAnswer(error)
  const base = baseHeaders(reply.exchange.requestId, false)
  reply.refuse(error, { status, json, headers: [...base, ...headers] })
}

function headersFor(reply: HttpReply, status: number, contentType: string): string[] {
  const headers = baseHeaders(reply.exchange.requestId, reply.keepsAlive(status))
  headers.push('content-type', contentType)
  return headers
}

/** The handler's headers; the protocol determines the content type. */
function addOwnHeaders(flat: string[], head: ReplyHead, { exchange }: HttpReply): void {
  addHandlerHeaders(flat, { ...head, contentType: undefined }, servesManagement(exchange.state.listener))
}
