import { splitElements } from '../../../common/tensors/bytes.ts'
import type { Datatype } from '../../../common/tensors/datatypes.ts'
import type { Parameters, RawTensor } from '../../../common/tensors/tensor.ts'
import { arrayOf } from '../../../common/tensors/typed.ts'
import type { Answer } from './answers.ts'
import type {
  InferParameter,
  ModelInferResponse,
  ParameterMap,
  TensorContents,
  TensorMessage,
} from './grpc-messages.ts'

/** Where the elements of each datatype stand; the others have only the raw form. */
const CONTENTS: Partial<Record<Datatype, keyof TensorContents>> = {
  BOOL: 'bool_contents',
  INT8: 'int_contents',
  INT16: 'int_contents',
  INT32: 'int_contents',
  INT64: 'int64_contents',
  UINT8: 'uint_contents',
  UINT16: 'uint_contents',
  UINT32: 'uint_contents',
  UINT64: 'uint64_contents',
  FP32: 'fp32_contents',
  FP64: 'fp64_contents',
  BYTES: 'bytes_contents',
}

/** The message of a response; raw if the client's request was, or if a datatype has no other form. */
export function inferResponse(answer: Answer, requestWasRaw: boolean): ModelInferResponse {
  const { modelName, modelVersion, id = '', parameters, outputs } = answer
  const raw = requestWasRaw || outputs.some(({ datatype }) => CONTENTS[datatype] === undefined)
  return {
    model_name: modelName,
    model_version: modelVersion,
    id,
    parameters: parameterMap(parameters),
    outputs: outputs.map((output) =>
      raw ? headOf(output) : { ...headOf(output), contents: contentsOf(output) },
    ),
    raw_output_contents: raw ? outputs.map(({ data }) => data) : [],
  }
}

function headOf({ name, datatype, shape, parameters }: RawTensor): TensorMessage {
  return { name, datatype, shape: [...shape], parameters: parameterMap(parameters) }
}

function contentsOf(output: RawTensor): TensorMessage['contents'] {
  const field = CONTENTS[output.datatype]!
  return { [field]: output.datatype === 'BYTES' ? splitElements(output) : elementsOf(output) }
}

function elementsOf(output: RawTensor): unknown[] {
  const array = arrayOf(output)
  if (output.datatype === 'BOOL') return Array.from(array as Uint8Array, (byte) => byte !== 0)
  if (array instanceof BigInt64Array || array instanceof BigUint64Array)
    return Array.from(array as BigInt64Array, String)
  return Array.from(array as Float64Array)
}

/** What a message has no form for (lists, objects) is JSON text. */
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
  if (typeof value !== 'number') return { string_param: JSON.stringify(value) }
  return Number.isSafeInteger(value) ? { int64_param: String(value) } : { double_param: value }
}
