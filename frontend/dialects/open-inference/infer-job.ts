import { randomUUID } from 'node:crypto'
import { ServeError } from '../../../common/errors.ts'
import { hasTensorMethod } from '../../../common/handler-methods.ts'
import { OPERATIONS } from '../../../common/openai/types.ts'
import { ownValue } from '../../../common/json.ts'
import { encodeRequest, type InferRequest } from '../../../common/tensors/message.ts'
import type { JobRequest } from '../../jobs/job-request.ts'
import type { ModelStatus, Routed } from '../../models/operations.ts'
import type { AnswerForm } from './answer-form.ts'
import type { AnswerFacts } from './answers.ts'
import type { InputCheck } from './declared-inputs.ts'
import { handlerParts, jsonPart } from './handler-parts.ts'
import { llmRequest } from './llm-request.ts'
import { openInferenceSettings } from './settings.ts'

/** What a request needs of the state of a model version. */
export type TargetStatus = Pick<ModelStatus, 'name' | 'version' | 'methods' | 'config' | 'envelope'>

/** The current state of the model version that a client asks. */
export interface Target {
  readonly status: TargetStatus
  /** See JobRequest. */
  readonly routedTo?: string | undefined
  /** Whether the handler accepts tensors. */
  readonly native: boolean
  /** Whether the handler accepts several messages per request. */
  readonly takesStreams: boolean
}

/**
 * The model version that a client asks. It fails until a worker has loaded the model, because only then the
 * handler's methods are known.
 * @throws ServeError MODEL_NOT_READY, MODEL_FAILED
 */
export function targetOf({ status, routedTo }: Routed): Target {
  const { methods, name } = status
  if (methods === undefined)
    throw status.failure ?? new ServeError('MODEL_NOT_READY', `Model ${name} is not ready yet.`)
  return {
    status,
    routedTo,
    native: hasTensorMethod(methods),
    takesStreams: methods.includes('predictStream'),
  }
}

/**
 * Whether a path that TorchServe shares with this protocol belongs to this protocol for a model: its handler
 * has methods besides TorchServe's `handle`.
 */
export function takesTensors({ methods = [] }: TargetStatus): boolean {
  return methods.some((method) => method !== 'handle')
}

/** What the conversion of tensors depends on besides them. */
export interface InferOptions {
  readonly facts: AnswerFacts
  /** The client requested a stream. */
  readonly stream: boolean
  /** max_request_size */
  readonly maxBytes: number
  /** max_request_elements */
  readonly maxElements: number
  /** What the model declares; undefined: nothing, or the server made the tensors. */
  readonly check: InputCheck | undefined
}

/** Tensors as the handler gets them, and how its responses are read. */
export interface HandlerInput extends Pick<JobRequest, 'method' | 'parts' | 'alone'> {
  readonly answers: AnswerForm
}

/**
 * The one place that decides how tensors reach a handler (docs/open-inference.md): unchanged if it accepts
 * tensors; as a request of the OpenAI API if it has those methods and the tensors are such a request; else as
 * parts.
 * @throws ServeError INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE
 */
export function handlerInput(
  { status, native }: Pick<Target, 'status' | 'native'>,
  infer: InferRequest,
  { facts, stream, maxBytes, maxElements, check }: InferOptions,
): HandlerInput {
  refuseExtensions(infer)
  if (native) {
    check?.check(infer)
    const method = stream ? 'predictStream' : 'predict'
    const parts = [{ name: 'body', data: encodeRequest(infer) }]
    return { method, parts, alone: stream, answers: { facts } }
  }
  // What else stands there may be as large as the request.
  const wanted = infer.outputs?.map(({ name }) => ({ name }))
  const { mapping } = openInferenceSettings(status)
  const llm = mapping === undefined ? llmRequest(infer, status, stream, maxElements) : undefined
  if (llm !== undefined) {
    const { operation, body } = llm
    // Seldon's proxy needs an id to translate the response.
    const answers = { facts: { ...facts, id: facts.id ?? randomUUID() }, operation, wanted }
    const parts = [{ name: 'body', contentType: 'application/json', data: body }]
    return { method: OPERATIONS[operation].method, parts, answers }
  }
  // Not before: the server knows the tensors of a language model better than the metadata.
  check?.check(infer)
  const isJson = mapping === undefined ? status.envelope?.startsWith('kserve') : mapping === 'json'
  if (isJson) return { method: 'handle', parts: jsonPart(status.name, infer), answers: { facts } }
  return { method: 'handle', parts: handlerParts(infer, maxBytes), answers: { facts, wanted } }
}

/** Parameters of an output that make Triton send something other than the tensor. */
const EXTENSIONS = ['shared_memory_region', 'classification']

function refuseExtensions({ outputs = [] }: InferRequest): void {
  for (const { name, parameters } of outputs) {
    const found = EXTENSIONS.find((extension) => ownValue(parameters ?? {}, extension) !== undefined)
    if (found)
      throw new ServeError('INVALID_TENSOR', `Output ${name}: the parameter ${found} is not supported`)
  }
}
