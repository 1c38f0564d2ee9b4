import type { ServerDuplexStream } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { headerLine } from '../../../common/header-lines.ts'
import { ownValue } from '../../../common/own-keys.ts'
import type { JobRequest } from '../../jobs/job.ts'
import { isTrue, newSequenceId, type SequenceHeaders } from '../../jobs/sequence-headers.ts'
import { jobRequest, type PredictionsRequest } from '../../edge/grpc/request.ts'

export type SequenceStream = ServerDuplexStream<PredictionsRequest, Buffer>

/**
 * The sequence that a message of StreamPredictions2 is for. It has to say so, unless its inputs mark the start of a sequence: then
 * the server chooses the id. @throws ServeError INVALID_ARGUMENT
 */
export function sequenceIdOf(message: PredictionsRequest, names: SequenceHeaders): string {
  if (message.sequence_id) return message.sequence_id
  if (isMarked(message, names.start)) return newSequenceId()
  throw new ServeError('INVALID_ARGUMENT', 'Parameter sequenceId is required.')
}

/** The neutral request of one message; the handler finds id, start and end among the headers. @throws ServeError INVALID_ARGUMENT */
export function sequenceRequest(
  call: SequenceStream,
  message: PredictionsRequest,
  id: string,
  names: SequenceHeaders,
): JobRequest {
  const request = jobRequest({
    request: message,
    metadata: call.metadata,
    getDeadline: () => call.getDeadline(),
  })
  request.headers += headerLine(names.id, id)
  for (const name of [names.start, names.end]) {
    if (isMarked(message, name)) request.headers += headerLine(name, 'true')
  }
  return request
}

function isMarked(message: PredictionsRequest, name: string): boolean {
  return isTrue(ownValue(message.input ?? {}, name)?.toString())
}
