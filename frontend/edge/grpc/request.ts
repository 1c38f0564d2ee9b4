import { randomUUID } from 'node:crypto'
import type { Deadline, Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { headerLine } from '../../../common/header-lines.ts'
import type { InferenceRequest, InputPart } from '../../jobs/job.ts'
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
export function inferenceRequest(call: IncomingCall): InferenceRequest {
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
  const names = Object.keys(input)
  if (names.length > MAX_PARTS) throw tooManyParts()
  const parts: InputPart[] = []
  for (const name of names) parts.push({ name, data: input[name]! })
  return parts
}

/** The client's metadata, without the token, gRPC's own and binary values. */
export function requestHeaders(metadata: Metadata): string {
  let lines = ''
  const values = metadata.getMap()
  for (const name of Object.keys(values)) {
    const value = values[name]
    if (typeof value === 'string' && !isWithheld(name)) lines += headerLine(name, value)
  }
  return lines
}

function isWithheld(name: string): boolean {
  return name === 'authorization' || name.startsWith('grpc-')
}
