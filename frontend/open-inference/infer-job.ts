import { ServeError } from '../../protocol/errors.ts'
import { encodeRequest, INFER_PART, STREAM_PART, type InferRequest } from '../../protocol/tensors/message.ts'
import type { InferenceRequest } from '../models/job.ts'
import type { ModelOperations, ModelStatus } from '../models/operations.ts'
import { handlerParts, jsonPart } from './handler-parts.ts'
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
 * The model that a client asks; none until a worker has loaded it, because only then it is known what its handler understands.
 * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, MODEL_NOT_READY
 */
export function targetOf(models: Pick<ModelOperations, 'status'>, name: string, version?: string): Target {
  const status = models.status(name, version)
  const { dialects } = status
  if (dialects === undefined) throw new ServeError('MODEL_NOT_READY', `Model ${name} is not ready yet.`)
  return {
    status,
    native: dialects.includes('open-inference'),
    takesStreams: dialects.includes('open-inference-stream'),
  }
}

/** What every dialect's adapter knows of a call. */
export interface CallFacts {
  requestId: string
  modelVersion: string | undefined
  /** protocol/header-lines.ts */
  headers: string
  deadline?: number
  /** The client wants every response as it comes. */
  stream: boolean
}

/** The neutral request: tensors for a handler that takes them, else parts (docs/open-inference.md). */
export function inferJob(
  { status, native }: Target,
  infer: InferRequest,
  { stream, ...facts }: CallFacts,
): InferenceRequest {
  const common = { ...facts, modelName: status.name }
  if (native) {
    const part = { name: stream ? STREAM_PART : INFER_PART, data: encodeRequest(infer) }
    return { ...common, parts: [part], alone: stream }
  }
  const { mapping } = openInferenceSettings(status)
  return { ...common, parts: mapping === 'json' ? jsonPart(status.name, infer) : handlerParts(infer) }
}
