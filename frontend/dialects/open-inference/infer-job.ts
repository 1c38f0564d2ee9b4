import { ServeError } from '../../../common/errors.ts'
import { hasTensorMethod } from '../../../common/handler-methods.ts'
import { encodeRequest, type InferRequest } from '../../../common/tensors/message.ts'
import type { InferenceRequest } from '../../jobs/job.ts'
import type { ModelOperations, ModelStatus } from '../../models/operations.ts'
import { nativeRequest } from '../../jobs/native-request.ts'
import { type AnswerFacts, type AnswerReader, HandlerAnswers } from './answers.ts'
import { handlerParts, jsonPart } from './handler-parts.ts'
import { LlmAnswers } from './llm-answers.ts'
import { llmRequest } from './llm-request.ts'
import { openInferenceSettings } from './settings.ts'

/** One model version that is asked, as it is now. */
export interface Target {
  readonly status: ModelStatus
  /** The handler takes tensors itself. */
  readonly native: boolean
  /** It takes several messages for one request. */
  readonly takesStreams: boolean
}

/**
 * The model that a client asks; none until a worker has loaded it, because only then it is known what its
 * handler understands.
 * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, MODEL_NOT_READY
 */
export function targetOf(models: Pick<ModelOperations, 'status'>, name: string, version?: string): Target {
  const status = models.status(name, version)
  const { methods } = status
  if (methods === undefined) throw new ServeError('MODEL_NOT_READY', `Model ${name} is not ready yet.`)
  return {
    status,
    native: hasTensorMethod(methods),
    takesStreams: methods.includes('predictStream'),
  }
}

/**
 * Whether a path that TorchServe shares with this protocol has the protocol's meaning for a model: its
 * handler has more than TorchServe's `handle`.
 */
export function takesTensors({ methods = [] }: ModelStatus): boolean {
  return methods.length > 0
}

/** What every dialect's adapter knows of a call. */
export interface CallFacts {
  requestId: string
  modelVersion: string | undefined
  /** common/header-lines.ts */
  headers: string
  deadline?: number
  /** The client wants every response as it comes. */
  stream: boolean
}

/** The neutral request, and how its answers are read. */
export interface InferCall {
  readonly request: InferenceRequest
  readonly reader: AnswerReader
}

/**
 * The one place that decides how tensors come to a handler (docs/open-inference.md): as they are if it takes
 * them; as a request of the OpenAI API if it speaks that and they are one; else as parts.
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
