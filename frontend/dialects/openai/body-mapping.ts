import { ServeError } from '../../../common/errors.ts'
import { parseJson } from '../../../common/json.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { SseReply } from '../../edge/http/sse.ts'
import type { OpenAICall } from './call.ts'
import { failReply } from './rest-fail-reply.ts'
import { DONE } from './native-sink.ts'

/**
 * For handlers of TorchServe's kind that understand the API's bodies themselves, as TorchServe's own handler for vLLM does: part
 * `body` is the whole request, `url_path` says which, and the answers are the API's own, with or without `data: ` before them.
 */
export function mapBody({ state, reply, request, body, modelVersion, headers, urlPath }: OpenAICall): void {
  const { model, stream } = request.body
  const parts = [{ name: 'body', contentType: 'application/json', data: body }]
  const job = new Job(
    { requestId: reply.requestId, modelName: model, modelVersion, method: 'handle', headers, urlPath, parts },
    new BodySink(reply, stream === true),
  )
  if (reply.follow(job)) state.models.submit(job)
}

class BodySink implements ReplySink {
  readonly #reply: SseReply
  readonly #stream: boolean

  constructor(reply: SseReply, stream: boolean) {
    this.#reply = reply
    this.#stream = stream
  }

  whole(head: ReplyHead, body: Uint8Array): void {
    const json = parsed(Buffer.from(body).toString())
    if (json !== undefined && isError(json)) this.#refuse(json, head)
    else if (this.#stream) this.#events(Buffer.from(body).toString(), true)
    else this.#reply.answer(head.status, 'application/json', body)
  }

  open(): void {
    this.#reply.open()
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    return this.#events(Buffer.from(chunk.subarray(from, to)).toString(), false)
  }

  close(): void {
    this.#reply.event(DONE)
    this.#reply.end()
  }

  fail(error: ServeError): void {
    failReply(this.#reply, error)
  }

  #events(text: string, last: boolean): boolean {
    let room = true
    for (const event of text.split('\n\n')) {
      const data = event.replace(/^data: ?/, '').trim()
      if (data !== '' && data !== DONE) room = this.#reply.event(data.replaceAll('\n', ' '))
    }
    if (last) this.close()
    return room
  }

  /** vLLM's error object, which says its status as `code`. */
  #refuse(json: Record<string, unknown>, head: ReplyHead): void {
    const given = Number(json['code'])
    const status = given >= 400 && given < 600 ? given : head.status >= 400 ? head.status : 400
    const message = typeof json['message'] === 'string' ? json['message'] : 'The handler refused the request'
    failReply(this.#reply, new ServeError('HANDLER_REJECTED', message, { status }))
  }
}

function isError(json: Record<string, unknown>): boolean {
  return json['object'] === 'error'
}

function parsed(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
