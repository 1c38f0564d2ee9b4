import { ServeError } from '../../../common/errors.ts'
import { parseJson } from '../../../common/json.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import type { OpenAICall } from './call.ts'
import { answerJson, DONE, EventSink } from './rest-reply.ts'

/**
 * For handlers with `handle` that understand the API's bodies, such as TorchServe's vLLM handler
 * (ts/torch_handler/vllm_handler.py): the part `body` is the whole request, `url_path` tells the operation,
 * and the responses are the API's own, with or without `data: ` in front.
 */
export function mapBody({ exchange, events, request, body, ...call }: OpenAICall): void {
  const { model, stream } = request.body
  const parts = [{ name: 'body', contentType: 'application/json', data: body }]
  const { modelVersion, routedTo, headers, credentials, urlPath } = call
  const asked = { modelName: model, modelVersion, routedTo, headers, credentials, urlPath }
  const job = new Job(
    { requestId: exchange.requestId, dialect: 'openai', sender: exchange, ...asked, method: 'handle', parts },
    new BodySink(events, stream === true),
  )
  if (exchange.reply.follow(job)) exchange.models.submit(job)
}

class BodySink extends EventSink {
  whole(head: ReplyHead, body: Uint8Array): void {
    const text = Buffer.from(body).toString()
    const json = parsed(text)
    if (json !== undefined && isError(json)) throw refusal(json, head)
    if (this.stream) this.#send(text, true)
    else answerJson(this.events.reply, head.status, body)
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
function refusal(json: Record<string, unknown>, head: ReplyHead): ServeError {
  const given = Number(json['code'])
  const status = given >= 400 && given < 600 ? given : head.status >= 400 ? head.status : 400
  const message = typeof json['message'] === 'string' ? json['message'] : 'The handler refused the request'
  return new ServeError('HANDLER_REJECTED', message, { status })
}

function isError(json: Record<string, unknown>): boolean {
  return json['object'] === 'error'
}

function parsed(text: string): Record<string, unknown> | undefined {
  const value = parseJson(text)
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
