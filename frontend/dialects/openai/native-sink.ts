import type { ServeError } from '../../../common/errors.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { SseReply } from '../../edge/http/sse.ts'
import { failReply } from './rest-fail-reply.ts'

/** The end of every stream of this API. */
export const DONE = '[DONE]'

/** Answers from a handler that speaks the API itself: its worker sends whole answers, or chunks that are complete. */
export class NativeSink implements ReplySink {
  readonly #reply: SseReply
  readonly #stream: boolean

  constructor(reply: SseReply, stream: boolean) {
    this.#reply = reply
    this.#stream = stream
  }

  whole(_head: ReplyHead, body: Uint8Array): void {
    if (!this.#stream) {
      this.#reply.answer(200, 'application/json', body)
      return
    }
    if (body.byteLength > 0) this.#reply.eventBytes(body, 0, body.byteLength)
    this.close()
  }

  open(): void {
    this.#reply.open()
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return from === to || this.#reply.eventBytes(chunk, from, to)
  }

  close(): void {
    this.#reply.event(DONE)
    this.#reply.end()
  }

  fail(error: ServeError): void {
    failReply(this.#reply, error)
  }
}
