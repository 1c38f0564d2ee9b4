import type { ServeError } from '../../../common/errors.ts'
import type { RestLog } from './rest-state.ts'

/** Failures of our own go to the log with their stack; clients see only the message. */
export function logFailure(log: RestLog, requestId: string, error: ServeError): void {
  if (error.code === 'INTERNAL') log.error({ requestId, detail: error.detail ?? error.stack }, error.message)
}
