import type { ServeError } from '../../../common/errors.ts'

/** What this room needs of a logger; pino's fits. */
export interface GrpcLog {
  debug(fields: object, message: string): void
  error(fields: object, message: string): void
}

/** Failures of our own go to the log with their stack; clients see only the message. */
export function logFailure(log: GrpcLog, rpc: string, error: ServeError): void {
  if (error.code !== 'INTERNAL') return
  log.error({ rpc, detail: error.detail ?? error.stack }, error.message)
}
