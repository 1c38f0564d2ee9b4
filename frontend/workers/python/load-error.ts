import { ServeError } from '../../../common/errors.ts'
import type { ExitCause } from '../exit-cause.ts'
import type { LoadReply } from './connection.ts'

/** The worker replied that it could not load the handler (model_service_worker.py). */
export function loadError({ code, message }: LoadReply, { stderr }: ExitCause): ServeError {
  return failure(code === 507, message, stderr)
}

/** The worker exited before the handler was loaded, without a reply. */
export function startError({ outOfMemory, reason, stderr }: ExitCause): ServeError {
  return failure(outOfMemory, reason, stderr)
}

function failure(outOfMemory: boolean, message: string, lines: readonly string[]): ServeError {
  const code = outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED'
  return new ServeError(code, message, { detail: lines.join('\n') })
}
