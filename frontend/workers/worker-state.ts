import type { ServeError } from '../../common/errors.ts'
import type { LogLevel } from '../../protocol/messages.ts'

/**
 * - starting: its processes are being started and connected
 * - loading: its handler is being loaded
 * - ready: it can take requests
 * - waiting: it died and starts again after a pause
 * - stopping: it finishes what it has and takes nothing new
 * - failed: it died too often and is not started again
 * - stopped: it is gone because it was not wanted any more
 */
export type WorkerState = 'starting' | 'loading' | 'ready' | 'waiting' | 'stopping' | 'failed' | 'stopped'

export type WorkerOutput = 'stdout' | 'stderr'

export interface WorkerEvents {
  /** It has a free slot. */
  onFree(): void
  /** Its processes died after they were loaded: what the handler knew is lost. The requests that it had fail next. */
  onLost(error: ServeError): void
  /** `output`: the process wrote it there, or the handler logged it (stdout); undefined: it is about the worker. */
  log(level: LogLevel, message: string, output?: WorkerOutput): void
}
