import { randomUUID } from 'node:crypto'
import type { Deadline, Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { headerLine } from '../../../common/header-lines.ts'
import type { JobRequest, InputPart } from '../../jobs/job.ts'
import { MAX_PARTS, tooManyParts } from '../../jobs/request-limits.ts'

/** PredictionsRequest as proto-loader decodes it: absent fields are undefined. */
export interface PredictionsRequest {
  model_name?: string
  model_version?: string
  input?: Record<string, Buffer>
  sequence_id?: string
}

/** The parts of a grpc-js call that make a request. */
interface IncomingCall {
  readonly request: PredictionsRequest
  readonly metadata: Metadata
  getDeadline(): Deadline
}

/** The neutral request of a gRPC call. @throws ServeError INVALID_ARGUMENT when it names no model, or has too many inputs */
export function jobRequest(call: IncomingCall): JobRequest {
  const { model_name: modelName, model_version: modelVersion, input } = call.request
  if (!modelName) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  return {
    requestId: randomUUID(),
    modelName,
    modelVersion: modelVersion === '' ? undefined : modelVersion,
    method: 'handle',
    headers: requestHeaders(call.metadata),
    parts: input === undefined ? [] : inputParts(input),
    deadline: deadlineOf(call),
  }
}

/** Milliseconds since the epoch; undefined without a deadline. */
export function deadlineOf(call: { getDeadline(): Deadline }): number | undefined {
  const deadline = Number(call.getDeadline())
  return Number.isFinite(deadline) ? deadline : undefined
}

/** Without content types, so that the handler gets bytes, as in TorchServe. */
function inputParts(input: Record<string, Buffer>): InputPart[] {
  const inputs = Object.entries(input)
  if (inputs.length > MAX_PARTS) throw tooManyParts()
  return inputs.map(([name, data]) => ({ name, data }))
}

/** The client's metadata, without the token, gRPC's own and binary values. */
export function requestHeaders(metadata: Metadata): string {
  let lines = ''
  for (const [name, value] of Object.entries(metadata.getMap())) {
    if (typeof value === 'string' && !isWithheld(name)) lines += headerLine(name, value)
  }
  return lines
}

function isWithheld(name: string): boolean {
  return name === 'authorization' || name.startsWith('grpc-')
}
