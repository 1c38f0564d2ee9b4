import { ServeError } from '../../../common/errors.ts'
import { splitElements } from '../../../common/tensors/bytes.ts'
import type { Datatype } from '../../../common/tensors/datatypes.ts'
import { checkHead, checkSize, type RawTensor } from '../../../common/tensors/tensor.ts'
import { numbersJson } from '../../../common/tensors/to-json.ts'
import { rawContents } from './grpc-contents.ts'
import type { TensorMessage, ModelInferRequest, ParameterMap } from './grpc-messages.ts'

/**
 * The request as the JSON that the handler gets, which is the protocol's own: integers keep all their digits,
 * BYTES are base64 (docs/grpc.md). Parameters and requested outputs stand in it when there are any. @throws
 * ServeError MALFORMED_BODY
 */
export function inferRequestJson(request: ModelInferRequest, maxBytes: number): string {
  const { raw_input_contents: raw, inputs } = request
  if (raw.length > 0 && raw.length !== inputs.length) {
    throw new ServeError(
      'MALFORMED_BODY',
      `raw_input_contents must have one entry for each input (${inputs.length}), but has ${raw.length}.`,
    )
  }
  const tensors = inputs.map((input, i) => tensorJson(input, raw[i], maxBytes))
  const fields = [
    `"id":${text(request.id)}`,
    `"model_name":${text(request.model_name)}`,
    ...parametersField(request.parameters),
    `"inputs":[${tensors.join(',')}]`,
  ]
  if (request.outputs.length > 0) {
    const outputs = request.outputs.map(
      ({ name, parameters }) => `{${[`"name":${text(name)}`, ...parametersField(parameters)].join(',')}}`,
    )
    fields.push(`"outputs":[${outputs.join(',')}]`)
  }
  return `{${fields.join(',')}}`
}

function tensorJson(input: TensorMessage, raw: Buffer | undefined, maxBytes: number): string {
  const data = raw === undefined ? contentsJson(input, maxBytes) : rawElements(input, raw)
  const fields = [
    `"name":${text(input.name)}`,
    `"shape":[${input.shape.join(',')}]`,
    `"datatype":${text(input.datatype)}`,
    ...parametersField(input.parameters),
  ]
  if (data !== undefined) fields.push(`"data":[${data}]`)
  return `{${fields.join(',')}}`
}

/** Undefined for a datatype that has no typed contents, as in TorchServe. */
function contentsJson(input: TensorMessage, maxBytes: number): string | undefined {
  const { name = '', datatype } = input
  const read = rawContents(input, maxBytes)
  return read && elementsOf({ name, datatype: datatype as Datatype, shape: [read.count], data: read.data })
}

/**
 * The elements of one raw tensor as the inside of a JSON array. @throws ServeError INVALID_TENSOR when its
 * size does not fit
 */
function rawElements({ name = '', datatype, shape }: TensorMessage, data: Buffer): string {
  return elementsOf(checkSize({ ...checkHead({ name, datatype, shape: shape.map(Number) }), data }))
}

function elementsOf(tensor: RawTensor): string {
  if (tensor.datatype === 'BYTES') return base64(splitElements(tensor))
  const json = numbersJson(tensor)
  if (json.includes('null')) throw notFinite(tensor.name)
  return json
}

function base64(elements: readonly Buffer[]): string {
  return elements.map((element) => `"${element.toString('base64')}"`).join(',')
}

function notFinite(name = ''): ServeError {
  const why = 'it holds a number that JSON cannot say (NaN or infinite)'
  return new ServeError('INVALID_TENSOR', `Tensor ${name} cannot be used: ${why}.`)
}

function parametersField(parameters: ParameterMap | undefined): string[] {
  const entries = Object.entries(parameters ?? {})
  if (entries.length === 0) return []
  const fields = entries.map(([name, { bool_param, int64_param, string_param }]) => {
    return `${text(name)}:${int64_param ?? JSON.stringify(bool_param ?? string_param ?? null)}`
  })
  return [`"parameters":{${fields.join(',')}}`]
}

function text(value: string | undefined): string {
  return JSON.stringify(value ?? '')
}
