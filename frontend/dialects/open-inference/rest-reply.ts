import { gzip } from 'node:zlib'
import type { ServeError } from '../../../common/errors.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import type { AnswerFacts } from './answers.ts'
import type { UnaryTarget } from '../joined-reply.ts'
import type { StreamTarget } from './replies.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { servesManagement } from '../../edge/http/page-check.ts'
import { addHandlerHeaders, baseHeaders } from '../../edge/http/safe-response.ts'
import { EventStream } from '../../edge/http/sse.ts'
import { errorText } from './error-text.ts'
import type { WireAnswer } from './rest-wire.ts'

/** Bytes; a shorter body is not worth compressing. */
const MIN_GZIP_BYTES = 500

/** Sends a unary response, compressed if the client accepts that. */
export class InferResponse implements UnaryTarget<WireAnswer> {
  readonly #call: HttpCall
  readonly #gzip: boolean

  constructor(call: HttpCall, takesGzip: boolean) {
    this.#call = call
    this.#gzip = takesGzip
  }

  answer(head: ReplyHead, { contentType, body, headers }: WireAnswer): void {
    const all = headersFor(this.#call, head.status, contentType)
    all.push(...headers)
    addOwnHeaders(all, head, this.#call)
    if (!this.#gzip || body.byteLength < MIN_GZIP_BYTES) {
      this.#call.reply.answer(head.status, all, body)
      return
    }
    gzip(body, (error, packed) => {
      this.#call.guard(() => {
        if (error !== null) throw error
        this.#call.reply.answer(head.status, [...all, ...PACKED], packed)
      })
    })
  }

  fail(error: ServeError): void {
    this.#call.fail(error)
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

  constructor(call: HttpCall, facts: AnswerFacts) {
    this.#events = new EventStream(call)
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
    const { call } = this.#events
    const { id, modelName } = this.#facts
    if (!call.reply.opened) {
      call.fail(error)
      return
    }
    call.logFailure(error)
    this.#events.event(JSON.stringify({ error: errorText(error), id, model_name: modelName }))
    this.#events.end()
  }

  #open(head: ReplyHead): void {
    const { call } = this.#events
    if (call.reply.opened) return
    const headers: string[] = []
    addOwnHeaders(headers, head, call)
    this.#events.open(headers)
  }
}

/** The reply to a request that is not an inference: its status and its body. */
export type JsonAnswer = readonly [status: number, body: object]

/** Sends JSON once it is available. */
export function sendJson(call: HttpCall, answer: Promise<JsonAnswer>): void {
  answer
    .then(([status, body]) => {
      const headers = headersFor(call, status, 'application/json')
      call.reply.answer(status, headers, Buffer.from(JSON.stringify(body)))
    })
    .catch((thrown: unknown) => call.fail(thrown))
}

function headersFor({ requestId, reply }: HttpCall, status: number, contentType: string): string[] {
  const headers = baseHeaders(requestId, reply.keepsAlive(status))
  headers.push('content-type', contentType)
  return headers
}

/** The handler's headers; the protocol determines the content type. */
function addOwnHeaders(flat: string[], head: ReplyHead, { state }: HttpCall): void {
  addHandlerHeaders(flat, { ...head, contentType: undefined }, servesManagement(state.listener))
}
