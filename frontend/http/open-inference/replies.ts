import { gzip } from 'node:zlib'
import { ServeError } from '../../../protocol/errors.ts'
import { ByteCollector } from '../../models/byte-collector.ts'
import type { Job } from '../../models/job.ts'
import type { ReplyHead, ReplySink } from '../../models/reply-sink.ts'
import { type Answer, type AnswerFacts, answerOf, isNative, rejected } from '../../open-inference/answers.ts'
import { addHandlerHeaders } from '../reply-headers.ts'
import type { SseReply } from '../sse.ts'
import { errorAnswer } from './errors.ts'
import type { WireAnswer } from './infer-response.ts'

/** What both kinds of replies know. */
export interface ReplyFacts extends AnswerFacts {
  readonly reply: SseReply
}

/** A body shorter than this is not worth compressing. */
const MIN_GZIP_BYTES = 500

/** The whole answer. The items of a stream of text are joined, up to `maxBytes`. */
export class InferReply implements ReplySink {
  readonly #facts: ReplyFacts
  readonly #encode: (answer: Answer) => WireAnswer
  readonly #limits: { maxBytes: number; gzip: boolean }
  #head: ReplyHead | undefined
  #items: ByteCollector | undefined
  #job: Job | undefined

  constructor(
    facts: ReplyFacts,
    encode: (answer: Answer) => WireAnswer,
    limits: { maxBytes: number; gzip: boolean },
  ) {
    this.#facts = facts
    this.#encode = encode
    this.#limits = limits
  }

  follow(job: Job): boolean {
    this.#job = job
    return this.#facts.reply.follow(job)
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      if (head.status >= 400) throw rejected(head, isNative(head) ? NO_BYTES : body)
      const { contentType, body: sent, headers } = this.#encode(answerOf(head, body, this.#facts))
      const all = [...headers]
      addHandlerHeaders(all, { ...head, contentType: undefined })
      this.#send(head.status, contentType, sent, all)
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  open(head: ReplyHead): void {
    this.#head = head
    this.#items = new ByteCollector(this.#limits.maxBytes)
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (!this.#items!.add(chunk.subarray(from, to))) {
      const message = `The streamed answer is larger than max_response_size (${this.#limits.maxBytes} bytes); use infer_stream`
      this.#job?.abort(new ServeError('RESPONSE_TOO_LARGE', message), 'failed')
    }
    return true
  }

  close(): void {
    this.whole(this.#head!, this.#items!.bytes())
  }

  fail(error: ServeError): void {
    refuse(this.#facts.reply, error)
  }

  #send(status: number, contentType: string, body: Buffer, headers: string[]): void {
    const { reply } = this.#facts
    if (!this.#limits.gzip || body.byteLength < MIN_GZIP_BYTES) {
      reply.answer(status, contentType, body, headers)
      return
    }
    gzip(body, (error, packed) => {
      if (error !== null) refuse(reply, ServeError.from(error))
      else
        reply.answer(status, contentType, packed, [
          ...headers,
          'Content-Encoding',
          'gzip',
          'Vary',
          'Accept-Encoding',
        ])
    })
  }
}

/** One event per response (spec 3.1); what fails after the first is an event too, and then the end (spec 3.2). */
export class InferStreamReply implements ReplySink {
  readonly #facts: ReplyFacts
  readonly #encode: (answer: Answer) => string
  #head: ReplyHead | undefined
  #job: Job | undefined

  constructor(facts: ReplyFacts, encode: (answer: Answer) => string) {
    this.#facts = facts
    this.#encode = encode
  }

  follow(job: Job): boolean {
    this.#job = job
    return this.#facts.reply.follow(job)
  }

  /** A handler that streams nothing: its answer is the only event; an empty one is none. */
  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      this.#head = head
      if (head.status >= 400) throw rejected(head, isNative(head) ? NO_BYTES : body)
      if (body.byteLength > 0) this.#event(body)
      this.close()
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  /** Nothing is sent yet: what the first item is decides the status. */
  open(head: ReplyHead): void {
    this.#head = head
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    if (from === to) return true // the end of a stream that has nothing more to say
    try {
      return this.#event(chunk.subarray(from, to))
    } catch (thrown) {
      this.#job!.abort(ServeError.from(thrown), 'failed')
      return true
    }
  }

  close(): void {
    this.#open()
    this.#facts.reply.end()
  }

  fail(error: ServeError): void {
    const { reply, id, modelName } = this.#facts
    if (!reply.opened) {
      refuse(reply, error)
      return
    }
    reply.event(JSON.stringify({ error: error.message, id, model_name: modelName }))
    reply.end()
  }

  /** False: the connection is full. */
  #event(item: Uint8Array): boolean {
    const event = this.#encode(answerOf(this.#head!, item, this.#facts))
    this.#open()
    return this.#facts.reply.event(event)
  }

  #open(): void {
    const { reply } = this.#facts
    if (reply.opened) return
    const headers: string[] = []
    addHandlerHeaders(headers, { ...this.#head!, contentType: undefined })
    reply.open(headers)
  }
}

export function refuse(reply: SseReply, error: ServeError): void {
  const { status, json, headers } = errorAnswer(error)
  reply.refuse(status, json, headers)
}

const NO_BYTES = Buffer.alloc(0)
