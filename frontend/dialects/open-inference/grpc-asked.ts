import { randomUUID } from 'node:crypto'
import { ServeError } from '../../../common/errors.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import type { JobRequest } from '../../jobs/job.ts'
import { readerOf } from './answer-form.ts'
import type { AnswerFacts, AnswerReader } from './answers.ts'
import { handlerInput, jobRequest, targetOf, type Target } from './infer-job.ts'
import { requestHeaders } from '../../edge/grpc/request.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import { inferRequest } from './grpc-request.ts'
import type { ModelInferRequest } from './grpc-messages.ts'

/** One message and whom it asks. */
export interface Asked {
  readonly target: Target
  readonly infer: InferRequest
  readonly facts: AnswerFacts
  /** So is its answer. */
  readonly raw: boolean
  readonly version: string | undefined
  /** max_request_size and max_request_elements */
  readonly maxBytes: number
  readonly maxElements: number
}

/**
 * @throws ServeError INVALID_ARGUMENT, INVALID_TENSOR, PAYLOAD_TOO_LARGE, MODEL_NOT_FOUND, VERSION_NOT_FOUND,
 * MODEL_NOT_READY
 */
export function asked(
  { models, settings }: Pick<GrpcCallDeps, 'models' | 'settings'>,
  message: ModelInferRequest,
): Asked {
  const { model_name: name, model_version: said, raw_input_contents: raw } = message
  if (!name) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  const version = said || undefined
  const target = targetOf(models, name, version)
  const { status } = target
  const maxBytes = settings.maxRequestSize
  const facts = { id: message.id || undefined, modelName: status.name, modelVersion: status.version }
  return {
    target,
    infer: inferRequest(message, maxBytes),
    facts,
    raw: raw.length > 0,
    version,
    maxBytes,
    maxElements: settings.maxRequestElements,
  }
}

/** The neutral request, and how its answers are read. */
export interface InferCall {
  readonly request: JobRequest
  readonly reader: AnswerReader
}

/** @throws ServeError INVALID_TENSOR, PAYLOAD_TOO_LARGE */
export function callFor(
  { target, infer, facts, version, maxBytes, maxElements }: Asked,
  metadata: Parameters<typeof requestHeaders>[0],
  deadline: number | undefined,
  stream: boolean,
): InferCall {
  const input = handlerInput(target, infer, { facts, stream, maxBytes, maxElements })
  const headers = requestHeaders(metadata)
  const call = { requestId: randomUUID(), modelVersion: version, headers, deadline }
  return { request: jobRequest(target, call, input), reader: readerOf(input.answers) }
}
