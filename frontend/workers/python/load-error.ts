import { ServeError } from '../../../common/errors.ts'
import type { ExitCause } from '../exit-cause.ts'
import type { LoadReply } from './connection.ts'

/** The handler could not be loaded, and the worker said so (spec 4.3). */
export function loadError({ code, message }: LoadReply, { stderr }: ExitCause): ServeError {
  return failure(code === 507, message, stderr)
}

/** The worker ended without a word before it was loaded. */
export function startError({ outOfMemory, reason, stderr }: ExitCause): ServeError {
  return failure(outOfMemory, reason, stderr)
}

function failure(outOfMemory: boolean, message: string, lines: readonly string[]): ServeError {
  const code = outOfMemory ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED'
  return new ServeError(code, message, { detail: lines.join('\n') })
}
