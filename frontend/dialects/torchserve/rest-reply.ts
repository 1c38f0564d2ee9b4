import type { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import type { ChunkWriter } from '../../edge/http/chunk-writer.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import type { HttpReply } from '../../edge/http/http-reply.ts'
import { servesManagement } from '../../edge/http/page-check.ts'
import { addHandlerHeaders } from '../../edge/http/safe-response.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'

/** TorchServe's JSON format: two spaces, no undefined fields, a newline at the end. */
export function prettyJson(value: unknown): string {
  return `${exactJson(value, 2)}\n`
}

/**
 * The headers of every response, as in TorchServe (NettyUtils.sendHttpResponse): name, value, name, value.
 */
export function commonHeaders(requestId: string, keepAlive: boolean): string[] {
  return [
    'x-request-id',
    requestId,
    'Pragma',
    'no-cache',
    'Cache-Control',
    'no-cache; no-store, must-revalidate, private',
    'Expires',
    'Thu, 01 Jan 1970 00:00:00 UTC',
    'connection',
    keepAlive ? 'keep-alive' : 'close',
  ]
}

/** Sends TorchServe's JSON. `reason` replaces the standard phrase of the status. */
export function sendJson(call: HttpCall, status: number, value: unknown, reason?: string): void {
  const headers = commonHeaders(call.requestId, call.reply.keepsAlive(status))
  headers.push('content-type', 'application/json')
  call.reply.answer(status, headers, Buffer.from(prettyJson(value)), reason)
}

/** The response to one job: a plain response, or one HTTP chunk per item. */
export class RestReply implements ReplySink {
  readonly #call: HttpCall
  readonly #reply: HttpReply
  readonly #isWorkflow: boolean
  /** Set once a stream has begun. */
  #writer: ChunkWriter | undefined

  constructor(call: HttpCall, isWorkflow = false) {
    this.#call = call
    this.#reply = call.reply
    this.#isWorkflow = isWorkflow
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    this.#reply.answer(head.status, this.#headers(head), body, this.#reason(head))
  }

  open(head: ReplyHead): void {
    if (this.#reply.ended) return
    const headers = this.#headers(head)
    headers.push('ts_stream_next', 'true')
    this.#writer = this.#reply.open(head.status, headers, undefined, this.#reason(head))
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#reply.ended || this.#writer!.write(chunk, from, to)
  }

  close(): void {
    this.#reply.end()
  }

  fail(error: ServeError): void {
    this.#call.fail(error)
  }

  /** Without the handler's own: as in TorchServe none for a model, and the standard one for a workflow. */
  #reason({ reason = '' }: ReplyHead): string | undefined {
    return this.#isWorkflow && reason === '' ? undefined : reason
  }

  #headers(head: ReplyHead): string[] {
    const { requestId, state } = this.#call
    const headers = commonHeaders(requestId, this.#reply.keepsAlive(head.status))
    addHandlerHeaders(headers, head, servesManagement(state.listener))
    return headers
  }
}
