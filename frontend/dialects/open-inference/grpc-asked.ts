import type { Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { INLINE_BYTES } from '../../edge/conversion-threads.ts'
import { newRequestId } from '../../jobs/request-id.ts'
import type { JobRequest } from '../../jobs/job.ts'
import type { Sender } from '../../jobs/sender.ts'
import type { AnswerFacts } from './answers.ts'
import { type MessageTask, readMessage, tensorBytes } from './conversions.ts'
import { MessageAnswers } from './grpc-answers.ts'
import { inThread } from './in-thread.ts'
import { type HandlerInput, jobRequest, targetOf, type Target } from './infer-job.ts'
import { requestHeaders } from '../../edge/grpc/request.ts'
import type { GrpcCallDeps } from '../grpc-dialect.ts'
import type { ModelInferRequest } from './grpc-messages.ts'

/** One message and whom it asks. */
export interface Asked {
  readonly target: Target
  readonly message: ModelInferRequest
  /** See JobRequest. */
  readonly headers: string
  readonly facts: AnswerFacts
  readonly sender: Sender
  /** So is its answer. */
  readonly raw: boolean
  readonly version: string | undefined
  /** max_request_size and max_request_elements */
  readonly maxBytes: number
  readonly maxElements: number
}

/**
 * @param routedTo the version that weights chose before, if they did
 * @throws ServeError INVALID_ARGUMENT, MODEL_NOT_FOUND, VERSION_NOT_FOUND, MODEL_NOT_READY, MODEL_FAILED
 */
export function asked(
  { models, settings, sender }: Pick<GrpcCallDeps, 'models' | 'settings' | 'sender'>,
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
  const maxBytes = settings.maxRequestSize
  const facts = { id: message.id || undefined, modelName: status.name, modelVersion: status.version }
  return {
    target,
    message,
    headers,
    facts,
    sender,
    raw: raw.length > 0,
    version,
    maxBytes,
    maxElements: settings.maxRequestElements,
  }
}

/** The neutral request, and how its answers are read. */
export interface InferCall {
  readonly request: JobRequest
  readonly reader: MessageAnswers
}

/**
 * Reads the tensors: those of a large message in a thread, unless the handler takes them as they are. `raw`:
 * whether the answers are.
 * @throws ServeError INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE; a promise rejects with these, and
 * those of the thread
 */
export function callFor(
  { target, message, headers, facts, sender, version, maxBytes, maxElements }: Asked,
  deadline: number | undefined,
  { stream, raw: answersRaw }: { stream: boolean; raw: boolean },
): InferCall | Promise<InferCall> {
  const { native, status } = target
  const call = (input: HandlerInput): InferCall => {
    const known = { requestId: newRequestId(), dialect: 'open-inference-grpc', sender }
    const own = { ...known, modelVersion: version, headers, deadline }
    return { request: jobRequest(target, own, input), reader: new MessageAnswers(input.answers, answersRaw) }
  }
  const task: MessageTask = { message, target, stream, facts, maxBytes, maxElements }
  if (native || tensorBytes(message) <= INLINE_BYTES) return call(readMessage(task))
  const { name, version: served, methods, config, envelope } = status
  // All that a thread needs, and nothing that it could not get.
  const plain = { status: { name, version: served, methods, config, envelope }, native }
  return inThread.run('readMessage', { ...task, target: plain }).then(call)
}

/** Goes on with a value, now or later. What either throws goes to `fail`. */
export function whenRead<Value>(
  read: () => Value | Promise<Value>,
  then: (value: Value) => void,
  fail: (error: ServeError) => void,
): void {
  const failed = (thrown: unknown): void => fail(ServeError.from(thrown))
  try {
    const value = read()
    if (value instanceof Promise) value.then(then).catch(failed)
    else then(value)
  } catch (thrown) {
    failed(thrown)
  }
}
