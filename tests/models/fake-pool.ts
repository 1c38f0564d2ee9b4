import type { Job } from '../../frontend/jobs/job.ts'
import type { Model } from '../../frontend/models/model.ts'
import type { ModelFailure } from '../../frontend/models/model-errors.ts'
import type { WorkerDescription } from '../../frontend/models/operations.ts'
import type { PoolLoad, WorkerPool } from '../../frontend/models/worker-pool.ts'

/** The workers of a model, which the test plays. */
export class FakePool implements WorkerPool {
  readonly model: Model
  wanted = 0
  ready = 0
  healthy = 0
  failure: ModelFailure | undefined
  readonly lastExit = undefined
  readonly unsentBytes = 0
  /** Jobs that the test says its workers have. */
  running: Job[] = []
  readonly graces: number[] = []
  kills = 0
  /** What the workers of the next `scale` do; default: they load at once. */
  onScale: (count: number) => Promise<void> = () => Promise.resolve()
  /** What becomes of the workers at `stop`; default: they end at once. */
  onStop: (graceMs: number) => Promise<void> = () => Promise.resolve()

  constructor(model: Model) {
    this.model = model
  }

  /** What becomes of the processes at `kill`; default: they end at once. */
  onKill: () => Promise<void> = () => Promise.resolve()

  async scale(count: number): Promise<void> {
    this.wanted = this.healthy = count
    await this.onScale(count)
    this.ready = count
  }

  resize(count: number): void {
    this.wanted = this.healthy = count
    this.ready = Math.min(this.ready, count)
  }

  endDrained(): void {
    // Its workers end at once.
  }

  load(): PoolLoad {
    const starting = this.failure === undefined ? this.wanted - this.ready : 0
    const busy = Math.min(this.jobs().length, this.ready)
    return {
      ...{ starting, failing: this.failure !== undefined, draining: 0, leaving: 0 },
      ...{ slots: this.ready, busy },
    }
  }

  async stop(graceMs: number): Promise<void> {
    this.graces.push(graceMs)
    await this.onStop(graceMs)
    this.wanted = this.ready = this.healthy = 0
  }

  /** Its workers take what waits, and what comes. */
  take(): void {
    const run = (jobs: readonly Job[]): void => {
      for (const job of jobs) job.started({ abandon: () => undefined, drained: () => undefined })
      this.running.push(...jobs)
    }
    this.model.queue.serve([
      { freeSlots: 1, room: 0, run, runLater: () => undefined, sequenceEnded: () => undefined },
    ])
    this.model.queue.hand()
  }

  jobs(): Job[] {
    return this.running.filter((job) => !job.ended)
  }

  describe(): WorkerDescription[] {
    return Array.from(
      { length: this.wanted },
      (_, index) =>
        ({ id: String(index), status: index < this.ready ? 'READY' : 'UNLOADING' }) as WorkerDescription,
    )
  }

  kill(): Promise<void> {
    this.kills += 1
    return this.onKill()
  }
}
