import { ServeError } from '../../../common/errors.ts'
import { isDatatype, type Datatype } from '../../../common/tensors/datatypes.ts'
import { rawFromJson } from '../../../common/tensors/from-json.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import { checkHead, checkSize, type Parameters, type RawTensor } from '../../../common/tensors/tensor.ts'
import type { ModelInferRequest, ParameterMap, TensorContents, TensorMessage } from './grpc-messages.ts'

/** Where the elements of each datatype stand; the others have only the raw form. */
export const CONTENTS: Partial<Record<Datatype, keyof TensorContents>> = {
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

/**
 * The request with raw tensors. Each input without contents takes the next raw one, as in MLServer; none may
 * be left over.
 * @throws ServeError INVALID_TENSOR
 */
export function inferRequest(message: ModelInferRequest): InferRequest {
  const raw = message.raw_input_contents
  let taken = 0
  const inputs = message.inputs.map((input) => {
    const tensor = tensorOf(input, raw[taken])
    if (input.contents === undefined && taken < raw.length) taken += 1
    return tensor
  })
  if (taken < raw.length) {
    throw new ServeError(
      'INVALID_TENSOR',
      `${raw.length} raw_input_contents are more than inputs without contents`,
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

function tensorOf(input: TensorMessage, raw: Buffer | undefined): RawTensor {
  const { name = '', datatype, contents } = input
  const parameters = parametersOf(input.parameters)
  const head = checkHead({ name, datatype, shape: input.shape.map(Number), parameters })
  if (contents === undefined && raw !== undefined) return checkSize({ ...head, data: raw })
  const field = isDatatype(datatype) ? CONTENTS[datatype] : undefined
  if (field === undefined)
    throw new ServeError('INVALID_TENSOR', `Tensor ${name}: ${datatype} has only a raw form`)
  return { ...head, data: rawFromJson(head, contents?.[field] ?? []) }
}

/** Undefined for none. Whole numbers beyond what JavaScript holds exactly stay texts. */
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

function whole(text: string): number | string {
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : text
}
