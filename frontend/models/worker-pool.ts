import type { ModelFailure } from './model-errors.ts'
import type { WorkerDescription } from './operations.ts'

/** The state of the workers, for scaling and metrics. */
export interface PoolLoad {
  /** Workers that start, and have not failed to. */
  readonly starting: number
  /** Whether a worker has failed, and not served since. */
  readonly failing: boolean
  /** Workers that take no new requests and end when they have none. */
  readonly draining: number
  /** Workers whose processes are ending. */
  readonly leaving: number
  /** Slots of the ready workers. */
  readonly slots: number
  /** How many of them are in use. */
  readonly busy: number
}

/** Why a process of a worker ended. */
export interface WorkerExit {
  readonly at: Date
  /** The class of the cause, which strangers may read. */
  readonly publicCause: string
}

/** The workers of one model version, as seen by the models; implemented in frontend/workers. */
export interface WorkerPool {
  /** Requested number of workers. */
  readonly wanted: number
  /** Workers that have loaded their handler and serve requests. */
  readonly ready: number
  /** Workers that have not used up their retries; /ping counts them. */
  readonly healthy: number
  /** Set while every worker has failed to load its handler since it last served; undefined: one may serve. */
  readonly failure: ModelFailure | undefined
  /** The last end of a process of any worker, other than at a scale or a stop; undefined: there was none. */
  readonly lastExit: WorkerExit | undefined
  /**
   * Starts or stops workers to reach `count`. Resolves when all of them are loaded and surplus ones have
   * ended.
   * @throws ServeError WORKER_START_FAILED with the cause when a worker fails before it is loaded
   */
  scale(count: number): Promise<void>
  /**
   * Starts workers to reach `count`, or lets surplus ones drain: they get no new requests but those of their
   * sequences. Does not wait.
   */
  resize(count: number): void
  /** Ends the draining workers that have nothing left to do. */
  endDrained(): void
  load(): PoolLoad
  /** Bytes of requests that were sent to its workers and that they have not taken. */
  readonly unsentBytes: number
  /**
   * Stops all workers after giving running work `graceMs` milliseconds.
   * @throws ServeError CLEANUP_TIMEOUT when workers had to be killed
   */
  stop(graceMs: number): Promise<void>
  describe(): WorkerDescription[]
  /** Kills every process, synchronously. Resolves when all have ended and what they printed is read. */
  kill(): Promise<void>
}
