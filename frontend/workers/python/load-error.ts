import { ServeError } from '../../../common/errors.ts'
import { type ExitCause, HANDLER_THREW, whileLoading } from '../exit-cause.ts'
import type { LoadReply } from './connection.ts'

/**
 * The worker replied that it could not load the handler (model_service_worker.py).
 * @param raised the exception that it printed, as Tracebacks tells it
 */
export function loadError({ code, message }: LoadReply, { stderr }: ExitCause, raised?: string): ServeError {
  const outOfMemory = code === 507
  const told = raised === undefined || outOfMemory ? message : `${message}: ${raised}`
  return failure(outOfMemory, told, stderr, HANDLER_THREW)
}

/** The worker exited before the handler was loaded, without a reply. @param raised as of loadError */
export function startError(cause: ExitCause, raised?: string): ServeError {
  // An exception that was printed before a signal is not what ended the process.
  if (raised === undefined || cause.signal !== undefined || cause.outOfMemory)
    return failure(cause.outOfMemory, cause.reason, cause.stderr, whileLoading(cause), cause.cause)
  return failure(false, raised, cause.stderr, HANDLER_THREW)
}

function failure(
  outOfMemory: boolean,
  message: string,
  lines: readonly string[],
  publicCause: string,
  cause?: Error,
): ServeError {
  const code = outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED'
  return new ServeError(code, message, { detail: lines.join('\n'), isPrinted: true, publicCause, cause })
}
