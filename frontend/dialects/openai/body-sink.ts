import { ServeError } from '../../../common/errors.ts'
import { isObject, parseJson } from '../../../common/json.ts'
import type { ReplyHead } from '../../jobs/reply-sink.ts'
import { answerJson, DONE, EventSink } from './rest-reply.ts'

/**
 * For handlers with `handle` that understand the API's bodies, such as TorchServe's vLLM handler
 * (ts/torch_handler/vllm_handler.py): `url_path` tells the operation, and the responses are the API's own,
 * with or without `data: ` in front.
 */
export class BodySink extends EventSink {
  whole(head: ReplyHead, body: Uint8Array): void {
    const text = Buffer.from(body).toString()
    const json = parseJson(text)
    if (isObject(json) && json['object'] === 'error') throw refusal(json, head)
    if (this.stream) this.#send(text, true)
    else answerJson(this.events.call, head.status, body)
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
