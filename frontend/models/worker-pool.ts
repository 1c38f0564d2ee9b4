import type { Job } from '../jobs/job.ts'
import type { WorkerDescription } from './operations.ts'

/** The workers of one model version, as the models see them; frontend/workers has the real one. */
export interface WorkerPool {
  /** Workers that are wanted. */
  readonly wanted: number
  /** Workers that have loaded their handler and serve now. */
  readonly ready: number
  /** Workers that are not past their retries (spec 1.5, /ping). */
  readonly healthy: number
  /**
   * Starts or stops workers until `count` are wanted. Resolves when the wanted ones are loaded and the others gone.
   * @throws ServeError WORKER_START_FAILED with the cause of death when one of them fails before it is loaded
   */
  scale(count: number): Promise<void>
  /**
   * Stops all workers, letting running work finish for `graceMs` first.
   * @throws ServeError CLEANUP_TIMEOUT when they had to be killed
   */
  stop(graceMs: number): Promise<void>
  /** The jobs that its workers have and that have not ended. */
  jobs(): Job[]
  describe(): WorkerDescription[]
  /** Ends every process at once: nothing is waited for. */
  kill(): void
}
