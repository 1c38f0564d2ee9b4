import { ServeError } from '../../common/errors.ts'
import type { JobRequest } from './job.ts'

/** Maximum number of inputs per request, because each costs far more memory than its bytes on the wire. */
export const MAX_PARTS = 1_024
/** What a request may add to a worker's frame beyond max_request_size, in bytes: names, types, headers. */
export const REQUEST_OVERHEAD_BYTES = 512 * 1_024
/** Upper bound of the keys and lengths of one input in a frame, in bytes. */
const PART_OVERHEAD_BYTES = 64

/** Bytes from which on a batch takes no further request: what is beyond them makes the next batch. */
const FULL_BATCH_BYTES = 2 ** 29
/** Bytes of a batch's frame. Twice as many, because its requests have more than their inputs and headers. */
const BATCH_FRAME_BYTES = 2 * FULL_BATCH_BYTES

/**
 * Maximum bytes of the requests in one frame. A frame holds the largest request, whatever the product of size
 * and number: frames have at most 4 GiB.
 */
export function batchFrameBytes(maxRequestSize: number, batchSize: number): number {
  const request = maxRequestSize + REQUEST_OVERHEAD_BYTES
  return Math.min(request * batchSize, Math.max(request, BATCH_FRAME_BYTES))
}

/** Counts the bytes of a batch. */
export class BatchBytes {
  #bytes = 0

  /** Whether the batch has room for the request, which then counts. The first one always fits. */
  take(request: Pick<JobRequest, 'parts' | 'headers'>): boolean {
    const bytes = requestBytes(request)
    if (this.#bytes > 0 && this.#bytes + bytes > FULL_BATCH_BYTES) return false
    this.#bytes += bytes
    return true
  }
}

export function tooManyParts(): ServeError {
  return new ServeError('INVALID_ARGUMENT', `A request may have at most ${MAX_PARTS} inputs.`)
}

/**
 * Rejects a request that exceeds a frame, which would end the worker. @throws ServeError PAYLOAD_TOO_LARGE
 */
export function checkSize(request: Pick<JobRequest, 'parts' | 'headers'>, maxRequestSize: number): void {
  if (requestBytes(request) > maxRequestSize + REQUEST_OVERHEAD_BYTES) {
    throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
  }
}

function requestBytes({ parts, headers }: Pick<JobRequest, 'parts' | 'headers'>): number {
  let bytes = headers.length
  for (const { name, contentType, data } of parts) {
    bytes += data.byteLength + textBytes(name) + PART_OVERHEAD_BYTES
    if (contentType !== undefined) bytes += textBytes(contentType)
  }
  return bytes
}

/**
 * UTF-8 bytes. For a short text an upper bound, because counting would take longer than the rest of the
 * check.
 */
function textBytes(text: string): number {
  return text.length < 64 ? text.length * 3 : Buffer.byteLength(text)
}
