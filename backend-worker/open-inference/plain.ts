import { isUtf8 } from 'node:buffer'
import { ServeError } from '../../common/errors.ts'
import { exactJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import { joinElements, splitElements } from '../../common/tensors/bytes.ts'
import { requestFrom, type InferRequest } from '../../common/tensors/message.ts'
import type { RawTensor } from '../../common/tensors/tensor.ts'
import { withTensors } from '../../common/tensors/to-json.ts'
import { parseClientJson } from '../bounded-json.ts'
import type { HandlerRequest } from '../handler.ts'
import type { RawResponse } from './messages.ts'

/**
 * Converts a request of one of TorchServe's routes. A JSON body with `inputs` is an inference request.
 * Otherwise each part becomes an input with its name, BYTES `[1]`; JSON that is not a string is passed as
 * JSON text.
 * @throws ServeError INVALID_TENSOR; INVALID_ARGUMENT for JSON of too many elements
 */
export function fromParts(parts: HandlerRequest): InferRequest {
  const body = parts['body'] ?? parts['data']
  const json = parsed(body)
  if (isObject(json) && Array.isArray(json['inputs'])) return requestFrom(json)
  return { inputs: Object.entries(parts).map(([name, value]) => bytesTensor(name, value)) }
}

/** A body without a content type may be JSON too. */
function parsed(body: unknown): unknown {
  if (!(body instanceof Uint8Array) || body[0] !== 0x7b) return body
  try {
    return parseClientJson(body)
  } catch (thrown) {
    if (thrown instanceof ServeError) throw thrown
    return undefined
  }
}

function bytesTensor(name: string, value: unknown): RawTensor {
  const isBytes = value instanceof Uint8Array
  const element = isBytes || typeof value === 'string' ? value : exactJson(value)
  const isText = typeof element === 'string' || isUtf8(element)
  const parameters = isText ? { content_type: 'str' } : undefined
  return { name, datatype: 'BYTES', shape: [1], parameters, data: joinElements([element]) }
}

/**
 * The response for a client of TorchServe: the element itself if there is one output with one BYTES element,
 * else JSON.
 */
export function toPlain(response: RawResponse): { body: Uint8Array; contentType?: string } {
  const [output, ...others] = response.outputs
  if (output?.datatype === 'BYTES' && others.length === 0) {
    const elements = splitElements(output)
    if (elements.length === 1) return { body: elements[0]! }
  }
  const { id, model_name, model_version, parameters, outputs } = response
  const json = withTensors({ model_name, model_version, id, parameters }, 'outputs', outputs)
  return { body: Buffer.from(json), contentType: 'application/json' }
}
