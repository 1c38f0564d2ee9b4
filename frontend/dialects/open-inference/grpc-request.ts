import { ServeError } from '../../../common/errors.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import {
  checkHead,
  checkSize,
  type Parameters,
  type RawTensor,
  shapeOf,
} from '../../../common/tensors/tensor.ts'
import { rawContents } from './grpc-contents.ts'
import type { TensorMessage, ModelInferRequest, ParameterMap } from './grpc-messages.ts'

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
export function parametersOf(map: ParameterMap | undefined): Parameters | undefined {
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
