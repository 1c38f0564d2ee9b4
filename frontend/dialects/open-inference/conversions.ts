import { asBuffer } from '../../../common/tensors/bytes.ts'
import type { Converted } from '../../edge/conversion-threads.ts'
import { readerOf } from './answer-form.ts'
import type { AnswerFacts } from './answers.ts'
import type { AnswerTask } from './converted-answers.ts'
import { checkNesting, inputCheck } from './declared-inputs.ts'
import type { ModelInferRequest, ModelInferResponse } from './grpc-messages.ts'
import { inferRequestJson } from './grpc-request-json.ts'
import { inferRequest } from './grpc-request.ts'
import { inferResponse } from './grpc-response.ts'
import { handlerInput, type HandlerInput, type Target } from './infer-job.ts'
import { generateRequest, isGenerate } from './rest-generate.ts'
import { isRaw, rawRequest, splitBody, wireRequest, type WireRequest } from './rest-request.ts'
import { wireAnswer, type WireAnswer, type WireForm } from './rest-response.ts'
import { openInferenceSettings } from './settings.ts'

/** A body over REST, and all that its reading depends on. */
export interface RequestTask {
  readonly body: Uint8Array
  /** The header Inference-Header-Content-Length. */
  readonly length: string | undefined
  /** A path of the generate extension, whose bodies may use it. */
  readonly mayGenerate: boolean
  readonly target: Pick<Target, 'status' | 'native'>
  readonly stream: boolean
  /** Defaults; the request's own id comes first. */
  readonly facts: AnswerFacts
  /** max_request_elements */
  readonly maxElements: number
  /** max_request_size */
  readonly maxBytes: number
}

/** A request as the handler gets it, and how its responses are written. */
export interface RequestRead {
  readonly input: HandlerInput
  readonly form: WireForm
}

/** A message over gRPC, and all that its reading depends on. */
export interface MessageTask extends Omit<RequestTask, 'body' | 'length' | 'mayGenerate'> {
  readonly message: ModelInferRequest
}

/** A message that becomes TorchServe's JSON. */
export type JsonTask = Pick<MessageTask, 'message' | 'maxBytes'>

/** A response of a handler, and how it is written. */
type WireTask = AnswerTask & { readonly form: WireForm }

/** A response of a handler that becomes a message; `raw`: with raw contents. */
type AnswerMessageTask = AnswerTask & { readonly raw: boolean }

/**
 * Reads a request.
 * @throws ServeError INVALID_ARGUMENT, MALFORMED_BODY, INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE
 */
export function readRequest(task: RequestTask): RequestRead {
  const { target, stream, maxBytes, maxElements } = task
  const declared = inputCheck(target.status)
  const { infer, form } = inferOf(task, declared !== undefined)
  // With the generate extension, the server makes the tensors from the metadata.
  const check = form === 'generate' ? undefined : declared
  const { id, modelName, modelVersion } = task.facts
  const facts = { id: infer.id ?? id, modelName, modelVersion }
  return { input: handlerInput(target, infer, { facts, stream, maxBytes, maxElements, check }), form }
}

/** Reads a message. @throws ServeError INVALID_TENSOR, TENSOR_MISMATCH, PAYLOAD_TOO_LARGE */
export function readMessage({ message, target, ...options }: MessageTask): HandlerInput {
  const check = inputCheck(target.status)
  return handlerInput(target, inferRequest(message, options.maxBytes), { ...options, check })
}

/** Reads a message as TorchServe does. @throws ServeError as inferRequestJson */
export function readMessageJson({ message, maxBytes }: JsonTask): Buffer {
  return Buffer.from(inferRequestJson(message, maxBytes))
}

/** Bytes of the tensors in a message. */
export function tensorBytes({ inputs, raw_input_contents: raw }: ModelInferRequest): number {
  let size = 0
  for (const { contents } of inputs) size += contents?.byteLength ?? 0
  for (const { byteLength } of raw) size += byteLength
  return size
}

/** Reads a response and writes it. @throws ServeError as AnswerReader.read */
function writeAnswer({ body, head, answers, form }: WireTask): WireAnswer {
  return wireAnswer(readerOf(answers).read(head, body), form)
}

/** Reads a response as a message. @throws ServeError as AnswerReader.read */
function answerMessage({ body, head, answers, raw }: AnswerMessageTask): ModelInferResponse {
  return inferResponse(readerOf(answers).read(head, body), raw)
}

/** The same in a thread. */
export const conversions = {
  readRequest: (task: RequestTask): Converted<RequestRead> => {
    const value = readRequest(task)
    return { value, bytes: value.input.parts.map(({ data }) => data) }
  },
  readMessage: (task: MessageTask): Converted<HandlerInput> => {
    const value = readMessage({ ...task, message: received(task.message) })
    return { value, bytes: value.parts.map(({ data }) => data) }
  },
  readMessageJson: (task: JsonTask): Converted<Uint8Array> => {
    const value = readMessageJson({ ...task, message: received(task.message) })
    return { value, bytes: [value] }
  },
  writeAnswer: (task: WireTask): Converted<WireAnswer> => {
    const value = writeAnswer(task)
    return { value, bytes: [value.body] }
  },
  answerMessage: (task: AnswerMessageTask): Converted<ModelInferResponse> => {
    const value = answerMessage(task)
    const contents = value.outputs.flatMap(({ contents }) => contents ?? [])
    return { value, bytes: [...contents, ...value.raw_output_contents] }
  },
}

function inferOf(task: RequestTask, isChecked: boolean): { infer: WireRequest['infer']; form: WireForm } {
  const { length, target, maxElements } = task
  const body = asBuffer(task.body)
  if (isRaw(length)) return tensorsOf(rawRequest(body, openInferenceSettings(target.status).inputs))
  const parts = splitBody(body, length, maxElements)
  if (!task.mayGenerate || !isGenerate(parts.value)) {
    const read = tensorsOf(wireRequest(parts))
    if (isChecked) checkNesting(parts.value['inputs'])
    return read
  }
  const { inputs } = openInferenceSettings(target.status)
  return { infer: generateRequest(parts.value, inputs), form: 'generate' }
}

function tensorsOf({ infer, binary }: WireRequest): { infer: WireRequest['infer']; form: WireForm } {
  return { infer, form: binary }
}

/** A copy in a thread has other bytes than Buffers. */
function received(message: ModelInferRequest): ModelInferRequest {
  return {
    ...message,
    inputs: message.inputs.map(({ contents, ...input }) => ({
      ...input,
      ...(contents !== undefined && { contents: asBuffer(contents) }),
    })),
    raw_input_contents: message.raw_input_contents.map(asBuffer),
  }
}
