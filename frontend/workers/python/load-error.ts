import { ServeError } from '../../../common/errors.ts'
import { type ExitCause, HANDLER_THREW, whileLoading } from '../exit-cause.ts'
import type { LoadReply } from './connection.ts'

/** The worker replied that it could not load the handler (model_service_worker.py). */
export function loadError({ code, message }: LoadReply, { stderr }: ExitCause): ServeError {
  return failure(code === 507, message, stderr, HANDLER_THREW)
}

/** The worker exited before the handler was loaded, without a reply. */
export function startError(cause: ExitCause): ServeError {
  return failure(cause.outOfMemory, cause.reason, cause.stderr, whileLoading(cause))
}

function failure(
  outOfMemory: boolean,
  message: string,
  lines: readonly string[],
  publicCause: string,
): ServeError {
  const code = outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED'
  return new ServeError(code, message, { detail: lines.join('\n'), isPrinted: true, publicCause })
}
