import type { ErrorCode, ServeError } from '../../common/errors.ts'

/**
 * What the model, its workers or its time limits are to blame for. A full queue says how much is asked, not
 * how well the model answers; the client's own deadline says nothing either.
 */
const FAULTS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'MODEL_FAILED',
  'NO_WORKER',
  'QUEUE_TIMEOUT',
  'RESPONSE_TIMEOUT',
  'REQUEST_TIMEOUT',
  'HANDLER_FAILED',
  'INVALID_OUTPUT',
  'RESPONSE_TOO_LARGE',
  'SEND_OVERFLOW',
  'OUT_OF_MEMORY',
  'WORKER_LOST',
  'WORKER_KILLED',
  'WORKER_START_FAILED',
  'PROTOCOL',
  'INTERNAL',
])

/** Whether the version that got the request is to blame for its failure, and not the client. */
export function isFault({ code, status = 500 }: ServeError): boolean {
  return code === 'HANDLER_REJECTED' ? status >= 500 : FAULTS.has(code)
}
