import { ServeError } from '../../common/errors.ts'
import { decodeRequest, type InferRequest, requestFrom, TENSORS_TYPE } from '../../common/tensors/message.ts'
import type { PredictRequest } from '../../protocol/messages.ts'
import type { Context, HandlerRequest } from '../handler.ts'
import { encodeRaw, type RawResponse } from './messages.ts'
import { isUtf8 } from 'node:buffer'
import { exactJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import { joinElements, splitElements } from '../../common/tensors/bytes.ts'
import type { RawTensor } from '../../common/tensors/tensor.ts'
import { withTensors } from '../../common/tensors/to-json.ts'
import { parseClientJson } from '../input.ts'

/** One request to a handler of the Open Inference Protocol, and how its responses are encoded. */
export interface Call {
  readonly index: number
  readonly request: InferRequest
  /** The request came over one of TorchServe's routes, and its responses use that dialect. */
  readonly plain: boolean
}

/**
 * The call of a request for `predict` or `predictStream`. Its one part is a tensor message.
 * @throws ServeError INVALID_TENSOR, MALFORMED_BODY
 */
export function tensorCall({ parts }: PredictRequest, index: number): Call {
  const [part] = parts
  if (part === undefined)
    throw new ServeError('PROTOCOL', 'A tensor request must have one part, the tensor message')
  return { index, request: decodeRequest(part.data), plain: false }
}

/** The call of a request for `handle`. @throws ServeError INVALID_TENSOR */
export function plainCall(parts: HandlerRequest, index: number): Call {
  return { index, request: fromParts(parts), plain: true }
}

/** Encodes a response. The content type tells the frontend the format. */
export function encodeFor(
  { plain, index, request }: Call,
  response: RawResponse,
  context: Context,
): Uint8Array {
  if (plain) {
    const { body, contentType } = toPlain(response)
    if (contentType !== undefined) context.setResponseContentType(index, contentType)
    return body
  }
  context.setResponseContentType(index, TENSORS_TYPE)
  return encodeRaw({ ...response, id: response.id ?? request.id })
}

/**
 * Converts a request of one of TorchServe's routes. A JSON body with `inputs` is an inference request.
 * Otherwise each part becomes an input with its name, BYTES `[1]`; JSON that is not a string is passed as
 * JSON text.
 * @throws ServeError INVALID_TENSOR; INVALID_ARGUMENT for JSON of too many elements
 */
function fromParts(parts: HandlerRequest): InferRequest {
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
function toPlain(response: RawResponse): { body: Uint8Array; contentType?: string } {
  const [output, ...others] = response.outputs
  if (output?.datatype === 'BYTES' && others.length === 0) {
    const elements = splitElements(output)
    if (elements.length === 1) return { body: elements[0]! }
  }
  const { id, model_name, model_version, parameters, outputs } = response
  const json = withTensors({ model_name, model_version, id, parameters }, 'outputs', outputs)
  return { body: Buffer.from(json), contentType: 'application/json' }
}
