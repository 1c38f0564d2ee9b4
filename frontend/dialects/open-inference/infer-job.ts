import { ServeError } from '../../../common/errors.ts'
import { hasTensorMethod } from '../../../common/handler-methods.ts'
import { encodeRequest, type InferRequest } from '../../../common/tensors/message.ts'
import type { JobRequest } from '../../jobs/job.ts'
import type { ModelOperations, ModelStatus } from '../../models/operations.ts'
import { nativeRequest } from '../../jobs/native-request.ts'
import { type AnswerFacts, type AnswerReader, HandlerAnswers } from './answers.ts'
import { handlerParts, jsonPart } from './handler-parts.ts'
import { LlmAnswers } from './llm-answers.ts'
import { llmRequest } from './llm-request.ts'
import { openInferenceSettings } from './settings.ts'

/** The current state of the model version that a client asks. */
export interface Target {
  readonly status: ModelStatus
  /** Whether the handler accepts tensors. */
  readonly native: boolean
  /** Whether the handler accepts several messages per request. */
  readonly takesStreams: boolean
}

/**
 * The model version that a client asks. It fails until a worker has loaded the model, because only then the
 * handler's methods are known.
 * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, MODEL_NOT_READY, MODEL_FAILED
 */
export function targetOf(models: Pick<ModelOperations, 'status'>, name: string, version?: string): Target {
  const status = models.status(name, version)
  const { methods } = status
  if (methods === undefined)
    throw status.failure ?? new ServeError('MODEL_NOT_READY', `Model ${name} is not ready yet.`)
  return {
    status,
    native: hasTensorMethod(methods),
    takesStreams: methods.includes('predictStream'),
  }
}

/**
 * Whether a path that TorchServe shares with this protocol belongs to this protocol for a model: its handler
 * has native methods besides TorchServe's `handle`.
 */
export function takesTensors({ methods = [] }: ModelStatus): boolean {
  return methods.length > 0
}

/** What REST and gRPC know of a call. */
export interface CallFacts {
  requestId: string
  modelVersion: string | undefined
  /** In the format of common/header-lines.ts. */
  headers: string
  /** See JobRequest. */
  credentials?: string
  deadline?: number
  /** The client requested a stream. */
  stream: boolean
}

/** The neutral request, and how its responses are converted. */
export interface InferCall {
  readonly request: JobRequest
  readonly reader: AnswerReader
}

/**
 * The one place that decides how tensors reach a handler (docs/open-inference.md): unchanged if it accepts
 * tensors; as a request of the OpenAI API if it has those methods and the tensors are such a request; else as
 * parts.
 */
export function inferJob(
  { status, native }: Target,
  infer: InferRequest,
  { stream, ...facts }: CallFacts,
  answerFacts: AnswerFacts,
): InferCall {
  const common = { ...facts, modelName: status.name }
  if (native) {
    const method = stream ? 'predictStream' : 'predict'
    const parts = [{ name: 'body', data: encodeRequest(infer) }]
    return {
      request: { ...common, method, parts, alone: stream },
      reader: new HandlerAnswers(answerFacts),
    }
  }
  const { mapping } = openInferenceSettings(status)
  const llm = mapping === undefined ? llmRequest(infer, status, stream) : undefined
  if (llm !== undefined) {
    const request = nativeRequest(llm.operation, llm.body, common)
    return { request, reader: new LlmAnswers(answerFacts, llm.operation, infer.outputs) }
  }
  if (mapping === 'json') {
    const parts = jsonPart(status.name, infer)
    return { request: { ...common, method: 'handle', parts }, reader: new HandlerAnswers(answerFacts) }
  }
  const parts = handlerParts(infer)
  return {
    request: { ...common, method: 'handle', parts },
    reader: new HandlerAnswers(answerFacts, infer.outputs),
  }
}
