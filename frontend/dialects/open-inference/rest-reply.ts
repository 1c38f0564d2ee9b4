import { gzip } from 'node:zlib'
import { ServeError } from '../../../common/errors.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import type { Answer, AnswerFacts } from './answers.ts'
import type { StreamTarget, UnaryTarget } from './replies.ts'
import { addHandlerHeaders } from '../../edge/http/reply-headers.ts'
import type { SseReply } from '../../edge/http/sse.ts'
import { errorAnswer } from './rest-errors.ts'
import type { WireAnswer } from './rest-response.ts'

/** A body shorter than this is not worth compressing. */
const MIN_GZIP_BYTES = 500

/** One answer as a plain response, compressed if the client takes that. */
export class InferResponse implements UnaryTarget {
  readonly #reply: SseReply
  readonly #encode: (answer: Answer) => WireAnswer
  readonly #gzip: boolean

  constructor(reply: SseReply, encode: (answer: Answer) => WireAnswer, takesGzip: boolean) {
    this.#reply = reply
    this.#encode = encode
    this.#gzip = takesGzip
  }

  answer(head: ReplyHead, answer: Answer): void {
    const { contentType, body, headers } = this.#encode(answer)
    const all = [...headers, ...headersOf(head)]
    if (!this.#gzip || body.byteLength < MIN_GZIP_BYTES) {
      this.#reply.answer(head.status, contentType, body, all)
      return
    }
    gzip(body, (error, packed) => {
      try {
        if (error !== null) throw error
        this.#reply.answer(head.status, contentType, packed, [...all, ...PACKED])
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

/** One event per answer (spec 3.1); what fails after the first is an event too, and then the end (spec 3.2). */
export class InferEvents implements StreamTarget {
  readonly #reply: SseReply
  readonly #encode: (answer: Answer) => string
  readonly #facts: AnswerFacts

  constructor(reply: SseReply, encode: (answer: Answer) => string, facts: AnswerFacts) {
    this.#reply = reply
    this.#encode = encode
    this.#facts = facts
  }

  item(head: ReplyHead, answer: Answer): boolean {
    const event = this.#encode(answer)
    this.#open(head)
    return this.#reply.event(event)
  }

  end(head: ReplyHead): void {
    this.#open(head)
    this.#reply.end()
  }

  fail(error: ServeError): void {
    const { id, modelName } = this.#facts
    if (!this.#reply.opened) {
      refuse(this.#reply, error)
      return
    }
    this.#reply.failed(error)
    this.#reply.event(JSON.stringify({ error: error.message, id, model_name: modelName }))
    this.#reply.end()
  }

  #open(head: ReplyHead): void {
    if (!this.#reply.opened) this.#reply.open(headersOf(head))
  }
}

/** An answer that is neither a prediction nor a stream. */
export type Told = readonly [status: number, body: object]

/** Answers with JSON when it is there. */
export function tell(reply: SseReply, telling: Promise<Told>): void {
  telling.then(
    ([status, body]) => {
      reply.answer(status, 'application/json', Buffer.from(JSON.stringify(body)))
    },
    (thrown: unknown) => {
      refuse(reply, ServeError.from(thrown))
    },
  )
}

/** The failure as a plain answer; nothing may have been sent. */
export function refuse(reply: SseReply, error: ServeError): void {
  reply.failed(error)
  const { status, json, headers } = errorAnswer(error)
  reply.refuse(status, json, headers)
}

/** Those of the handler. */
function headersOf(head: ReplyHead): string[] {
  const headers: string[] = []
  addHandlerHeaders(headers, { ...head, contentType: undefined })
  return headers
}
