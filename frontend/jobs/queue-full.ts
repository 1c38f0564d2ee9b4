import { ServeError } from '../../common/errors.ts'

/** Milliseconds after which a client may ask again. How long a queue stays full, nobody knows. */
const RETRY_AFTER_MS = 1_000

/** A request more than may wait. */
export function queueFull(message: string): ServeError {
  return new ServeError('QUEUE_FULL', message, { retryAfterMs: RETRY_AFTER_MS })
}
