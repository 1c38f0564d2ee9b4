import type { ServeError } from '../../common/errors.ts'
import type { ModelFailure } from '../models/model-errors.ts'
import type { LogLevel } from '../../protocol/messages.ts'

/**
 * - starting: its processes are being started and connected
 * - loading: its handler is being loaded
 * - ready: it can take requests
 * - waiting: it died and restarts after a pause
 * - stopping: it finishes its requests and accepts no new ones
 * - failed: it died too often and is not restarted
 * - stopped: it was stopped on request
 */
export type WorkerState = 'starting' | 'loading' | 'ready' | 'waiting' | 'stopping' | 'failed' | 'stopped'

export type WorkerOutput = 'stdout' | 'stderr'

/** A failure, for the log. */
export interface FailureText {
  /** One line. */
  readonly message: string
  /** What the handler said: a stack, or the last lines of its process. Empty: nothing. */
  readonly detail: string
  /** Whether the log has the detail already. */
  readonly isKnown: boolean
}

/** What a worker has of the machine. */
export interface Hardware {
  /** Ids of its GPUs; empty on CPU. */
  readonly devices: readonly number[]
  /** The first of them, as PyTorch names it with the server's number: `cuda:1`; `cpu`. */
  readonly device: string
  /** Threads for each process of a start. */
  threads(): number
}

export interface WorkerEvents {
  /** See StartOptions. Default: no. */
  readonly tellsThrown?: boolean
  /** It has a free slot. */
  onFree(): void
  /**
   * Its processes died after they were loaded, so the handler's state is lost. Its requests fail after this.
   */
  onLost(error: ServeError): void
  /** `Worker.failure` has changed: it cannot load its handler, or it has loaded it (undefined). */
  onFailureChange(failure: ModelFailure | undefined): void
  /** Its handler did not load, or a request failed. */
  failed(failure: FailureText): void
  /**
   * `output`: the process wrote the line to this output, or the handler logged it (stdout); undefined: the
   * line is about the worker.
   */
  log(level: LogLevel, message: string, output?: WorkerOutput): void
}
