import { ServeError } from '../../../common/errors.ts'
import { checkTensorBody } from '../../../common/json-bounds.ts'
import { unlessEmpty } from '../../../common/json.ts'
import { joinElements } from '../../../common/tensors/bytes.ts'
import { isDatatype } from '../../../common/tensors/datatypes.ts'
import { headOf, type InferRequest, parseObject, requestFrom } from '../../../common/tensors/message.ts'
import { checkSize } from '../../../common/tensors/tensor.ts'
import type { TensorMetadata } from './settings.ts'
import { exactJson } from '../../../common/exact-json.ts'
import { tensorJson, withTensors } from '../../../common/tensors/to-json.ts'
import type { Answer } from './answers.ts'
import { generateJson } from './rest-generate.ts'

/** A request, and how its responses are written. */
export interface WireRequest {
  readonly infer: InferRequest
  readonly form: WireForm
}

/** Reads JSON and the binary tensors behind it, as in Triton's binary tensor data extension. */
interface WireBody {
  readonly value: Record<string, unknown>
  readonly raw: Buffer
}

/**
 * `length`: the header Inference-Header-Content-Length. @throws ServeError INVALID_ARGUMENT, MALFORMED_BODY
 */
export function splitBody(body: Buffer, length: string | undefined, maxElements: number): WireBody {
  const end = length === undefined ? body.byteLength : headerLength(body, length)
  const json = body.subarray(0, end)
  checkTensorBody(json, maxElements)
  return { value: parseObject(json), raw: body.subarray(end) }
}

/** @throws ServeError INVALID_TENSOR */
export function wireRequest({ value, raw }: WireBody): WireRequest {
  const read = withoutEmptyList(requestFrom(value, raw))
  const { binary_data_output: all, ...parameters } = read.parameters ?? {}
  const wanted = read.outputs?.flatMap(({ name, parameters: own }) => {
    const said = own?.['binary_data']
    return said === undefined || said === null ? [] : [[name, said === true] as const]
  })
  const infer = {
    ...read,
    parameters: unlessEmpty(parameters),
    outputs: read.outputs?.map(({ name, parameters: own }) => ({ name, parameters: withoutBinary(own) })),
  }
  return { infer, form: { all: all === true, named: new Map(wanted) } }
}

/** An empty list of outputs requests all, as in the protocol's gRPC form. */
function withoutEmptyList(request: InferRequest): InferRequest {
  return request.outputs?.length === 0 ? { ...request, outputs: undefined } : request
}

/**
 * Reads a body that is the only input of a model, whose metadata describe it (Triton's raw binary request).
 * @throws ServeError INVALID_TENSOR
 */
export function rawRequest(body: Buffer, inputs: readonly TensorMetadata[]): WireRequest {
  const [input, ...others] = inputs
  if (input === undefined || others.length > 0 || !isDatatype(input.datatype)) {
    throw new ServeError(
      'INVALID_TENSOR',
      'A raw binary request requires a model whose metadata declare exactly one input',
    )
  }
  const { name, datatype } = input
  const isBytes = datatype === 'BYTES'
  const data = isBytes ? joinElements([body]) : body
  const shape = isBytes ? [1] : input.shape
  return {
    infer: { inputs: [checkSize({ name, datatype, shape, data })] },
    form: { all: true, named: new Map() },
  }
}

/** Whether the body is only binary data. */
export function isRaw(length: string | undefined): boolean {
  return length !== undefined && /^0+$/.test(length)
}

function headerLength(body: Buffer, length: string): number {
  const end = /^\d{1,15}$/.test(length) ? Number(length) : NaN
  if (end <= body.byteLength) return end
  throw new ServeError('INVALID_ARGUMENT', 'Inference-Header-Content-Length must be a length within the body')
}

function withoutBinary(parameters: InferRequest['parameters']): InferRequest['parameters'] {
  if (parameters === undefined) return undefined
  const { binary_data: _binary, ...rest } = parameters
  return unlessEmpty(rest)
}

/** Which outputs are binary data: those that are named so, else all or none. */
interface BinaryOutputs {
  readonly all: boolean
  readonly named: ReadonlyMap<string, boolean>
}

/** How a response is written: with the generate extension, or as tensors. */
export type WireForm = 'generate' | BinaryOutputs

/** An encoded unary response. */
export interface WireAnswer {
  readonly contentType: string
  readonly body: Uint8Array
  /** Additional headers: name, value, name, value. */
  readonly headers: readonly string[]
}

const JSON_TYPE = 'application/json'

/** The response as JSON on one line, with the keys in MLServer's order. */
export function answerJson(answer: Answer): string {
  return withTensors(answerHead(answer), 'outputs', answer.outputs)
}

/** JSON, followed by binary tensors if the client requested them (Triton's binary tensor data extension). */
export function wireAnswer(answer: Answer, form: WireForm): WireAnswer {
  if (form === 'generate') return jsonAnswer(generateJson(answer))
  const raw = answer.outputs.filter(({ name }) => form.named.get(name) ?? form.all)
  if (raw.length === 0) return jsonAnswer(answerJson(answer))
  const text = withTensors(answerHead(answer), 'outputs', answer.outputs, (output) =>
    raw.includes(output) ? exactJson(headOf(output)) : tensorJson(output),
  )
  const json = Buffer.from(text)
  return {
    contentType: 'application/octet-stream',
    body: Buffer.concat([json, ...raw.map(({ data }) => data)]),
    headers: ['Inference-Header-Content-Length', String(json.byteLength)],
  }
}

function jsonAnswer(json: string): WireAnswer {
  return { contentType: JSON_TYPE, body: Buffer.from(json), headers: [] }
}

function answerHead({ modelName, modelVersion, id, parameters }: Answer): object {
  return { model_name: modelName, model_version: modelVersion, id, parameters }
}
