import { ServeError } from '../../../protocol/errors.ts'
import { DATATYPES } from './datatypes.ts'
import type { InferInputTensor, ModelInferRequest, Parameters } from './messages.ts'
import { notFinite, rawElements } from './raw-contents.ts'

/**
 * The request as the JSON that the handler gets (spec 3.5), which is the protocol's own: integers keep all their digits, BYTES are base64.
 * Parameters and requested outputs stand in it when there are any. @throws ServeError MALFORMED_BODY
 */
export function inferRequestJson(request: ModelInferRequest): string {
  const { raw_input_contents: raw, inputs } = request
  if (raw.length > 0 && raw.length !== inputs.length) {
    throw new ServeError('MALFORMED_BODY', `${inputs.length} inputs have ${raw.length} raw_input_contents.`)
  }
  const tensors = inputs.map((input, i) => tensorJson(input, raw[i]))
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

function tensorJson(input: InferInputTensor, raw: Buffer | undefined): string {
  const data = raw === undefined ? contentsJson(input) : rawElements(input, raw)
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
function contentsJson({ name, datatype = '', contents }: InferInputTensor): string | undefined {
  const type = DATATYPES.get(datatype)
  if (type?.field === undefined) return undefined
  const elements = contents?.[type.field] ?? []
  if (type.kind === 'bytes') {
    return (elements as Buffer[]).map((bytes) => `"${bytes.toString('base64')}"`).join(',')
  }
  if (type.kind === 'float' && !(elements as number[]).every(Number.isFinite)) throw notFinite(name)
  return elements.join(',')
}

function parametersField(parameters: Parameters | undefined): string[] {
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
