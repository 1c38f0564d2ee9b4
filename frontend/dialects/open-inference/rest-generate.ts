import { isUtf8 } from 'node:buffer'
import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import { setOwn, unlessEmpty } from '../../../common/json.ts'
import { joinElements, splitElements } from '../../../common/tensors/bytes.ts'
import { isDatatype, type Datatype } from '../../../common/tensors/datatypes.ts'
import { tensorFromJson } from '../../../common/tensors/from-json.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import { checkParameters, elementCount, type RawTensor } from '../../../common/tensors/tensor.ts'
import { numbersJson, textsJson } from '../../../common/tensors/to-json.ts'
import type { Answer } from './answers.ts'
import type { TensorMetadata } from './settings.ts'

/** The generate extension of the Open Inference Protocol, which is Triton's generate extension. */

/**
 * A body without `inputs` uses this extension. With `inputs` it is an ordinary inference request, as in
 * MLServer.
 */
export function isGenerate(value: Record<string, unknown>): boolean {
  return !Array.isArray(value['inputs'])
}

/**
 * `text_input` becomes an input with that name. Each of `parameters` and the other keys becomes an input if
 * the model declares one with its name, else a parameter.
 * @throws ServeError INVALID_TENSOR
 */
export function generateRequest(
  value: Record<string, unknown>,
  declared: readonly TensorMetadata[],
): InferRequest {
  const { id, text_input: text, parameters, ...others } = value
  if (typeof text !== 'string') throw new ServeError('INVALID_TENSOR', 'text_input must be a string')
  if (id !== undefined && typeof id !== 'string')
    throw new ServeError('INVALID_TENSOR', 'id must be a string')
  const inputs: RawTensor[] = [textTensor('text_input', text)]
  const left: Record<string, unknown> = {}
  for (const [name, given] of Object.entries({ ...checkParameters(parameters), ...others })) {
    const input = declared.find((each) => each.name === name)
    if (input !== undefined && isDatatype(input.datatype)) inputs.push(tensor(name, input.datatype, given))
    else setOwn(left, name, given)
  }
  return { id, inputs, parameters: checkParameters(unlessEmpty(left)) }
}

/**
 * Every output becomes a key; a single element has no list around it. `text_output` is the text, whatever the
 * model calls it.
 */
export function generateJson({ id, modelName, modelVersion, parameters, outputs }: Answer): string {
  const head = { id, model_name: modelName, model_version: modelVersion, ...parameters }
  const fields = outputs.map((output) => `${JSON.stringify(output.name)}:${valueJson(output)}`)
  const text = textOutput(outputs)
  if (text !== undefined && text.name !== 'text_output') fields.push(`"text_output":${valueJson(text)}`)
  return `${[exactJson(head).slice(0, -1), ...fields].join(',')}}`
}

function textOutput(outputs: readonly RawTensor[]): RawTensor | undefined {
  const texts = outputs.filter(({ datatype }) => datatype === 'BYTES')
  const named = ['text_output', 'content', 'output'].map((name) => texts.find((each) => each.name === name))
  return named.find((each) => each !== undefined) ?? (texts.length === 1 ? texts[0] : undefined)
}

function valueJson(output: RawTensor): string {
  const list = output.datatype === 'BYTES' ? (textsJson(output) ?? textOrBase64(output)) : numbersJson(output)
  return elementCount(output) === 1 ? list : `[${list}]`
}

function textOrBase64(output: RawTensor): string {
  const texts = splitElements(output).map((element) => element.toString(isUtf8(element) ? 'utf8' : 'base64'))
  return JSON.stringify(texts).slice(1, -1)
}

function textTensor(name: string, text: string): RawTensor {
  const parameters = { content_type: 'str' }
  return { name, datatype: 'BYTES', shape: [1], parameters, data: joinElements([text]) }
}

function tensor(name: string, datatype: Datatype, given: unknown): RawTensor {
  const data = Array.isArray(given) ? (given as unknown[]) : [given]
  return tensorFromJson({ name, datatype, shape: [data.length] }, data)
}
