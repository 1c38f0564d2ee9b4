import { ServeError } from '../../common/errors.ts'
import { decodeRequest, TENSORS_TYPE, type InferRequest } from '../../common/tensors/message.ts'
import type { PredictRequest } from '../../protocol/messages.ts'
import type { Context, HandlerRequest } from '../handler.ts'
import { encodeRaw, type RawResponse } from './messages.ts'
import { fromParts, toPlain } from './plain.ts'

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
