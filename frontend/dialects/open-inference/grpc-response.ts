import { exactJson } from '../../../common/exact-json.ts'
import type { Parameters, RawTensor } from '../../../common/tensors/tensor.ts'
import type { Answer } from './answers.ts'
import { FIELDS } from './grpc-contents.ts'
import { typedContents } from './grpc-contents-writer.ts'
import type { InferParameter, ModelInferResponse, ParameterMap, TensorMessage } from './grpc-messages.ts'

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
