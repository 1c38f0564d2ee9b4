import { ServeError } from '../../common/errors.ts'
import type { JobRequest } from './job.ts'

/** Maximum number of inputs per request, because each costs far more memory than its bytes on the wire. */
export const MAX_PARTS = 1_024
/** What a request may add to a worker's frame beyond max_request_size, in bytes: names, types, headers. */
export const REQUEST_OVERHEAD_BYTES = 512 * 1_024
/** Upper bound of the keys and lengths of one input in a frame, in bytes. */
const PART_OVERHEAD_BYTES = 64

export function tooManyParts(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `A request may have at most ${MAX_PARTS} inputs.`)
}

/**
 * Rejects a request that exceeds a frame, which would end the worker. @throws ServeError PAYLOAD_TOO_LARGE
 */
export function checkSize(
  { parts, headers }: Pick<JobRequest, 'parts' | 'headers'>,
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

/**
 * UTF-8 bytes. For a short text an upper bound, because counting would take longer than the rest of the
 * check.
 */
function textBytes(text: string): number {
  return text.length < 64 ? text.length * 3 : Buffer.byteLength(text)
}
