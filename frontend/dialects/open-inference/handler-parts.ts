import { exactJson } from '../../../common/exact-json.ts'
import { splitElements } from '../../../common/tensors/bytes.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import { elementCount, type RawTensor } from '../../../common/tensors/tensor.ts'
import { base64Json, elementsJson, textsJson, withTensors } from '../../../common/tensors/to-json.ts'
import type { InputPart } from '../../../common/handler-methods.ts'

const JSON_TYPE = 'application/json'

/**
 * Converts tensors to the parts of a request for `handle`. A single input is the part `data` (or `body`, if
 * that is its name); several inputs are one part each, by name. One BYTES element is passed as its bytes;
 * several are a JSON list of strings (base64 if one is not UTF-8). Numbers are JSON, nested according to the
 * shape. Parameters, if any, are the JSON part `parameters`.
 * @param maxBytes of a request
 * @throws ServeError PAYLOAD_TOO_LARGE
 */
export function handlerParts({ inputs, parameters }: InferRequest, maxBytes: number): InputPart[] {
  const parts = inputs.map((input) => ({
    name: inputs.length === 1 && input.name !== 'body' ? 'data' : input.name,
    ...valueOf(input, maxBytes),
  }))
  if (parameters === undefined || Object.keys(parameters).length === 0) return parts
  return [...parts, { name: 'parameters', contentType: JSON_TYPE, data: Buffer.from(exactJson(parameters)) }]
}

/** The same as one JSON body, as TorchServe passes it on. BYTES are strings, or base64. */
export function jsonPart(
  modelName: string,
  { id = '', parameters, inputs, outputs }: InferRequest,
): InputPart[] {
  const head = { id, model_name: modelName, parameters, outputs }
  const data = Buffer.from(withTensors(head, 'inputs', inputs))
  return [{ name: 'body', contentType: JSON_TYPE, data }]
}

function valueOf(input: RawTensor, maxBytes: number): Omit<InputPart, 'name'> {
  if (input.datatype !== 'BYTES') return json(elementsJson(input, maxBytes))
  if (elementCount(input) === 1) return { data: splitElements(input)[0]! }
  return json(`[${textsJson(input) ?? base64Json(input)}]`)
}

function json(text: string): Omit<InputPart, 'name'> {
  return { contentType: JSON_TYPE, data: Buffer.from(text) }
}
