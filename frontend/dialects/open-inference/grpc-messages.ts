import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import {
  checkHead,
  checkSize,
  type Parameters,
  type RawTensor,
  shapeOf,
} from '../../../common/tensors/tensor.ts'
import type { Answer } from './answers.ts'
import { FIELDS, rawContents, typedContents } from './grpc-contents.ts'

/**
 * The messages of proto/infer_messages.proto as proto-loader decodes them: 64-bit integers are texts, absent
 * lists empty.
 */

export interface InferParameter {
  bool_param?: boolean
  int64_param?: string
  string_param?: string
  double_param?: number
  uint64_param?: string
}

export type ParameterMap = Record<string, InferParameter>

/** A tensor as infer_messages.proto has it. */
export interface TensorMessage {
  name?: string
  datatype?: string
  shape: (string | number)[]
  parameters?: ParameterMap
  /** The bytes of an InferTensorContents; see grpc-contents.ts and grpc-contents-writer.ts. */
  contents?: Buffer
}

export interface ModelInferRequest {
  model_name?: string
  model_version?: string
  id?: string
  parameters?: ParameterMap
  inputs: TensorMessage[]
  outputs: { name?: string; parameters?: ParameterMap }[]
  raw_input_contents: Buffer[]
}

export interface ModelInferResponse {
  model_name: string
  model_version: string
  id: string
  parameters: ParameterMap
  outputs: TensorMessage[]
  raw_output_contents: Uint8Array[]
}

/** Triton's. */
export interface ModelStreamInferResponse {
  error_message?: string
  infer_response: ModelInferResponse
}

export interface ModelRequest {
  name?: string
  version?: string
}

/** A load or unload; KServe's clients write the name into the first field. */
export interface RepositoryRequest {
  repository_name?: string
  model_name?: string
}

/**
 * The request with raw tensors. Each input without contents takes the next raw one, as in MLServer; none may
 * be left over.
 * @param maxBytes of the raw elements of a tensor
 * @throws ServeError INVALID_TENSOR, PAYLOAD_TOO_LARGE
 */
export function inferRequest(message: ModelInferRequest, maxBytes: number): InferRequest {
  const raw = message.raw_input_contents
  let taken = 0
  const inputs = message.inputs.map((input) => {
    const tensor = tensorOf(input, raw[taken], maxBytes)
    if (input.contents === undefined && taken < raw.length) taken += 1
    return tensor
  })
  if (taken < raw.length) {
    throw new ServeError(
      'INVALID_TENSOR',
      `raw_input_contents must have one entry for each input without contents (${taken}), but has ${raw.length}`,
    )
  }
  const outputs = message.outputs.map(({ name = '', parameters }) => ({
    name,
    parameters: parametersOf(parameters),
  }))
  return {
    id: message.id || undefined,
    parameters: parametersOf(message.parameters),
    inputs,
    outputs: outputs.length === 0 ? undefined : outputs,
  }
}

function tensorOf(input: TensorMessage, raw: Buffer | undefined, maxBytes: number): RawTensor {
  const { name = '', datatype, contents } = input
  const parameters = parametersOf(input.parameters)
  const head = checkHead({ name, datatype, shape: input.shape.map(Number), parameters })
  if (contents === undefined && raw !== undefined) return checkSize({ ...head, data: raw })
  const read = rawContents(input, maxBytes)
  if (read === undefined)
    throw new ServeError('INVALID_TENSOR', `Tensor ${name}: ${datatype} must be in raw_input_contents`)
  return { ...head, shape: shapeOf(head, read.count), data: read.data }
}

/** Undefined for none. Whole numbers beyond what JavaScript holds exactly are bigints. */
function parametersOf(map: ParameterMap | undefined): Parameters | undefined {
  const entries = Object.entries(map ?? {})
  if (entries.length === 0) return undefined
  return Object.fromEntries(
    entries.map(([name, { bool_param, int64_param, string_param, double_param, uint64_param }]) => {
      const integer = int64_param ?? uint64_param
      return [
        name,
        bool_param ?? (integer === undefined ? undefined : whole(integer)) ?? string_param ?? double_param,
      ]
    }),
  )
}

function whole(text: string): number | bigint {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}

/** The message of a response; raw if the client's request was, or if a datatype has no other form. */
export function inferResponse(answer: Answer, requestWasRaw: boolean): ModelInferResponse {
  const { modelName, modelVersion, id = '', parameters, outputs } = answer
  const raw = requestWasRaw || outputs.some(({ datatype }) => !FIELDS.has(datatype))
  return {
    model_name: modelName,
    model_version: modelVersion,
    id,
    parameters: parameterMap(parameters),
    outputs: outputs.map((output) =>
      raw ? headOf(output) : { ...headOf(output), contents: typedContents(output) },
    ),
    raw_output_contents: raw ? outputs.map(({ data }) => data) : [],
  }
}

function headOf({ name, datatype, shape, parameters }: RawTensor): TensorMessage {
  return { name, datatype, shape: [...shape], parameters: parameterMap(parameters) }
}

/** What a message has no form for (lists, objects, integers of more than 64 bits) is JSON text. */
export function parameterMap(parameters: Parameters = {}): ParameterMap {
  return Object.fromEntries(
    Object.entries(parameters)
      .filter(([, value]) => value !== undefined && value !== null)
      .map(([name, value]) => [name, parameter(value)]),
  )
}

function parameter(value: unknown): InferParameter {
  if (typeof value === 'boolean') return { bool_param: value }
  if (typeof value === 'string') return { string_param: value }
  if (typeof value === 'bigint' && value === BigInt.asIntN(64, value)) return { int64_param: String(value) }
  if (typeof value !== 'number') return { string_param: exactJson(value) }
  return Number.isSafeInteger(value) ? { int64_param: String(value) } : { double_param: value }
}
