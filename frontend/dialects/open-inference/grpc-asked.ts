import type { Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { newRequestId, type JobRequest } from '../../jobs/job-request.ts'

import { answersAs } from './answer-form.ts'
import type { AnswerFacts, AnswerReader } from './answers.ts'
import { inputCheck } from './declared-inputs.ts'
import { handlerInput, targetOf, type Target } from './infer-job.ts'
import { requestHeaders } from '../../edge/grpc/metadata.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import {
  inferRequest,
  inferResponse,
  type ModelInferRequest,
  type ModelInferResponse,
} from './grpc-messages.ts'

/** One message and whom it asks. */
export interface Asked {
  readonly target: Target
  readonly message: ModelInferRequest
  /** See JobRequest. */
  readonly headers: string
  readonly facts: AnswerFacts
  /** So is its answer. */
  readonly raw: boolean
  readonly version: string | undefined
}

/**
 * @param routedTo the version that weights chose before, if they did
 * @throws ServeError INVALID_ARGUMENT, MODEL_NOT_FOUND, VERSION_NOT_FOUND, MODEL_NOT_READY, MODEL_FAILED
 */
export function asked(
  { models }: Pick<GrpcCallDeps, 'models'>,
  message: ModelInferRequest,
  metadata: Metadata,
  routedTo?: string,
): Asked {
  const { model_name: name, model_version: said, raw_input_contents: raw } = message
  if (!name) throw new ServeError('INVALID_ARGUMENT', 'Parameter model_name is required.')
  const version = said || undefined
  const headers = requestHeaders(metadata)
  const target = targetOf(models.route({ modelName: name, modelVersion: version, headers, routedTo }))
  const { status } = target
  const facts = { id: message.id || undefined, modelName: status.name, modelVersion: status.version }
  return { target, message, headers, facts, raw: raw.length > 0, version }
}

/** The neutral request, and how its answers are read. */
export interface InferCall {
  readonly request: JobRequest
  readonly reader: AnswerReader<ModelInferResponse>
}

/**
 * Reads the tensors. `raw`: whether those of the answers are raw.
 * @throws ServeError INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE
 */
export function callFor(
  { settings, sender }: Pick<GrpcCallDeps, 'settings' | 'sender'>,
  { target, message, headers, facts, version: modelVersion }: Asked,
  deadline: number | undefined,
  { stream, raw }: { stream: boolean; raw: boolean },
): InferCall {
  const { maxRequestSize: maxBytes, maxRequestElements: maxElements } = settings
  const check = inputCheck(target.status)
  const infer = inferRequest(message, maxBytes)
  const input = handlerInput(target, infer, { facts, stream, maxBytes, maxElements, check })
  const { method, parts, alone } = input
  const request: JobRequest = {
    requestId: newRequestId(),
    dialect: 'open-inference-grpc',
    sender,
    modelName: target.status.name,
    modelVersion,
    routedTo: target.routedTo,
    headers,
    deadline,
    method,
    parts,
    alone,
  }
  return { request, reader: answersAs(input.answers, (answer) => inferResponse(answer, raw)) }
}
