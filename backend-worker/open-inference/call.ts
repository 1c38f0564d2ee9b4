import {
  decodeRequest,
  INFER_PART,
  STREAM_PART,
  TENSORS_TYPE,
  type InferRequest,
} from '../../common/tensors/message.ts'
import type { Context, HandlerRequest } from '../handler.ts'
import { encodeRaw, type RawResponse } from './messages.ts'
import { fromParts, toPlain } from './plain.ts'

/** One request to a handler that speaks the protocol, and how its answers are sent. */
export interface Call {
  readonly index: number
  readonly request: InferRequest
  /** What the client wants: one answer, a stream, or whatever there is (TorchServe's routes). */
  readonly kind: 'infer' | 'stream' | 'plain'
}

/** @throws ServeError INVALID_TENSOR, MALFORMED_BODY */
export function callOf(parts: HandlerRequest, index: number): Call {
  const infer = parts[INFER_PART]
  if (infer instanceof Uint8Array) return { index, request: decodeRequest(infer), kind: 'infer' }
  const stream = parts[STREAM_PART]
  if (stream instanceof Uint8Array) return { index, request: decodeRequest(stream), kind: 'stream' }
  return { index, request: fromParts(parts), kind: 'plain' }
}

/** A response as bytes; the content type tells the frontend what they are. */
export function encodeFor(
  { kind, index, request }: Call,
  response: RawResponse,
  context: Context,
): Uint8Array {
  if (kind === 'plain') {
    const { body, contentType } = toPlain(response)
    if (contentType !== undefined) context.setResponseContentType(index, contentType)
    return body
  }
  context.setResponseContentType(index, TENSORS_TYPE)
  return encodeRaw({ ...response, id: response.id ?? request.id })
}
