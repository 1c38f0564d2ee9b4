import type { ServeError } from '../../../common/errors.ts'
import type { SseReply } from '../../edge/http/sse.ts'
import { openaiFailure } from './rest-errors.ts'

/** A status of its own before the first event; after it an event with the error, and the end (spec 5.7). */
export function failReply(reply: SseReply, error: ServeError): void {
  reply.failed(error)
  const { status, json, headers } = openaiFailure(error)
  if (!reply.opened) {
    reply.refuse(status, json, headers)
    return
  }
  reply.event(json)
  reply.event('[DONE]')
  reply.end()
}
