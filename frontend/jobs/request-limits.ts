import { ServeError } from '../../common/errors.ts'
import type { InferenceRequest } from './job.ts'

/** Inputs of one request. More are refused: each costs far more memory than it has bytes on the wire. */
export const MAX_PARTS = 1_024
/** What one request may take in a worker's frame beyond max_request_size: names, types, headers. */
export const REQUEST_OVERHEAD_BYTES = 512 * 1_024
/** Keys and lengths of one input in a frame, rounded up. */
const PART_OVERHEAD_BYTES = 64

export function tooManyParts(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `A request may have at most ${MAX_PARTS} inputs.`)
}

/** A request that does not fit into a frame would end the worker. @throws ServeError PAYLOAD_TOO_LARGE */
export function checkSize(
  { parts, headers }: Pick<InferenceRequest, 'parts' | 'headers'>,
  maxRequestSize: number,
): void {
  let bytes = headers.length
  for (const { name, contentType, data } of parts) {
    bytes += data.byteLength + textBytes(name) + PART_OVERHEAD_BYTES
    if (contentType !== undefined) bytes += textBytes(contentType)
  }
  if (bytes > maxRequestSize + REQUEST_OVERHEAD_BYTES) {
    throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
  }
}

/** Bytes in UTF-8; of a short text, at most: counting them would take longer than all else here. */
function textBytes(text: string): number {
  return text.length < 64 ? text.length * 3 : Buffer.byteLength(text)
}
