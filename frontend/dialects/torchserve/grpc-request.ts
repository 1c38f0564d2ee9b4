import { ownValue } from '../../../common/json.ts'
import type { Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { headerLine } from '../../../common/headers.ts'
import { requestHeaders } from '../../edge/grpc/metadata.ts'
import {
  MAX_PARTS,
  newRequestId,
  type Sender,
  tooManyParts,
  type JobRequest,
} from '../../jobs/job-request.ts'

import type { InputPart } from '../../../common/handler-methods.ts'
import { isTrue, newSequenceId, type SequenceHeaders, sequenceIdLine } from '../../jobs/sequence-headers.ts'

/** PredictionsRequest as proto-loader decodes it: absent fields are undefined. */
export interface PredictionsRequest {
  model_name?: string
  model_version?: string
  input?: Record<string, Buffer>
  sequence_id?: string
}

/** What a call says beside its messages. */
export interface CallFacts {
  readonly metadata: Metadata
  /** Milliseconds since the epoch. */
  readonly deadline: number | undefined
  readonly sender: Sender
}

/**
 * The neutral request of a message. @throws ServeError INVALID_ARGUMENT when it names no model, or has too
 * many inputs
 */
export function jobRequest(
  { model_name: modelName, model_version: modelVersion, input }: PredictionsRequest,
  { metadata, deadline, sender }: CallFacts,
): JobRequest {
  if (!modelName) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  return {
    requestId: newRequestId(),
    dialect: 'torchserve-grpc',
    sender,
    modelName,
    modelVersion: modelVersion === '' ? undefined : modelVersion,
    method: 'handle',
    headers: requestHeaders(metadata),
    parts: input === undefined ? [] : inputParts(input),
    deadline,
  }
}

/** Without content types, so that the handler gets bytes, as in TorchServe. */
function inputParts(input: Record<string, Buffer>): InputPart[] {
  const inputs = Object.entries(input)
  if (inputs.length > MAX_PARTS) throw tooManyParts()
  return inputs.map(([name, data]) => ({ name, data }))
}

/**
 * The sequence that a message of StreamPredictions2 is for. It has to say so, unless its inputs mark the
 * start of a sequence: then the server chooses the id. @throws ServeError INVALID_ARGUMENT
 */
export function sequenceIdOf(message: PredictionsRequest, names: SequenceHeaders): string {
  if (message.sequence_id) return message.sequence_id
  if (isMarked(message, names.start)) return newSequenceId()
  throw new ServeError('INVALID_ARGUMENT', 'Parameter sequenceId is required.')
}

/**
 * The neutral request of a message of StreamPredictions2; the handler finds id, start and end among the
 * headers.
 * @throws ServeError INVALID_ARGUMENT
 */
export function sequenceRequest(
  call: CallFacts,
  message: PredictionsRequest,
  id: string,
  names: SequenceHeaders,
): JobRequest {
  const request = jobRequest(message, call)
  request.headers += sequenceIdLine(id, names)
  for (const name of [names.start, names.end]) {
    if (isMarked(message, name)) request.headers += headerLine(name, 'true')
  }
  return request
}

function isMarked(message: PredictionsRequest, name: string): boolean {
  return isTrue(ownValue(message.input ?? {}, name)?.toString())
}
