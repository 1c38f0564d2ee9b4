import { ServeError } from '../../../common/errors.ts'
import type { ChunkWriter } from '../../edge/http/chunk-writer.ts'
import type { HttpReply } from '../../edge/http/http-reply.ts'
import { servesManagement } from '../../edge/http/listener-kind.ts'
import { addHandlerHeaders } from '../../edge/http/reply-headers.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import { commonHeaders, prettyJson } from './rest-errors.ts'

/** Sends TorchServe's JSON. `reason` replaces the standard phrase of the status. */
export function sendJson(reply: HttpReply, status: number, value: unknown, reason?: string): void {
  const headers = commonHeaders(reply.exchange.requestId, reply.keepsAlive(status))
  headers.push('content-type', 'application/json')
  reply.answer(status, headers, Buffer.from(prettyJson(value)), reason)
}

/** The response to one job: a plain response, or one HTTP chunk per item. */
export class RestReply implements ReplySink {
  readonly #reply: HttpReply
  readonly #isWorkflow: boolean
  /** Set once a stream has begun. */
  #writer: ChunkWriter | undefined

  constructor(reply: HttpReply, isWorkflow = false) {
    this.#reply = reply
    this.#isWorkflow = isWorkflow
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    try {
      this.#reply.answer(head.status, this.#headers(head), body, this.#reason(head))
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
    }
  }

  open(head: ReplyHead): void {
    if (this.#reply.ended) return
    const headers = this.#headers(head)
    headers.push('ts_stream_next', 'true')
    try {
      this.#writer = this.#reply.open(head.status, headers, undefined, this.#reason(head))
    } catch (thrown) {
      this.fail(ServeError.from(thrown))
      this.#reply.cancelSource()
    }
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#reply.ended || this.#writer!.write(chunk, from, to)
  }

  close(): void {
    this.#reply.end()
  }

  fail(error: ServeError): void {
    const { exchange, opened } = this.#reply
    if (opened) this.#reply.break(error)
    else exchange.state.errors.fail(exchange, error)
  }

  /** Without the handler's own: as in TorchServe none for a model, and the standard one for a workflow. */
  #reason({ reason = '' }: ReplyHead): string | undefined {
    return this.#isWorkflow && reason === '' ? undefined : reason
  }

  #headers(head: ReplyHead): string[] {
    const { requestId, state } = this.#reply.exchange
    const headers = commonHeaders(requestId, this.#reply.keepsAlive(head.status))
    addHandlerHeaders(headers, head, servesManagement(state.listener))
    return headers
  }
}
