import { PassingSet } from '../../common/maps.ts'
import type { ServeError } from '../../common/errors.ts'
import {
  type Backlog,
  BatchPolicy,
  type BatchRule,
  type JobRunner,
  leastLoaded,
  type Scheduler,
} from './scheduler.ts'
import type { Job } from './job.ts'
import { type JobLimits, jobLimits, type JobTimeouts } from './time-limit.ts'
import { queueFull } from './open-jobs.ts'

export interface JobQueueOptions extends BatchRule {
  /** Maximum number of waiting jobs. */
  capacity: number
  timeouts: JobTimeouts
  /** The message for a client whose job finds no room. */
  full: string
}

/**
 * The bounded first-in-first-out queue of one model version. Any worker with a free slot takes the batch that
 * is ready (docs/batching.md).
 */
export class JobQueue implements Scheduler {
  readonly #options: JobQueueOptions
  readonly #limits: JobLimits
  readonly #jobs = new PassingSet<Job>()
  readonly #batches: BatchPolicy
  #workers: readonly JobRunner[] = []

  constructor(options: JobQueueOptions) {
    this.#options = options
    this.#limits = jobLimits(options.timeouts)
    this.#batches = new BatchPolicy(options, () => this.hand())
  }

  get pending(): number {
    return this.#jobs.size
  }

  get remainingCapacity(): number {
    return this.#options.capacity - this.pending
  }

  backlog(): Backlog {
    const [oldest] = this.#jobs
    return { jobs: this.#jobs.size, since: oldest?.createdAt }
  }

  isBound(): boolean {
    return false
  }

  add(job: Job): void {
    if (this.remainingCapacity <= 0) throw queueFull(this.#options.full)
    job.queued(this, this.#limits)
    this.#jobs.add(job)
    this.hand()
    if (job.startedAt === undefined) job.waits()
  }

  couldStart(): boolean {
    return this.#options.batchSize === 1 && this.#jobs.size === 0 && leastLoaded(this.#workers) !== undefined
  }

  serve(workers: readonly JobRunner[]): void {
    this.#workers = workers
  }

  /** Dispatches while a worker has a free slot and a batch is ready. */
  hand(): void {
    for (;;) {
      const worker = leastLoaded(this.#workers)
      if (worker === undefined) break
      const batch = this.take()
      if (batch.length === 0) return
      worker.run(batch)
    }
    this.#batches.noWorkerIsFree()
  }

  /** The next batch, oldest job first; empty if none is ready. */
  take(): Job[] {
    return this.#remove(this.#batches.take(this.#jobs, this.#jobs.size))
  }

  /** The job ended while it waited, so it never starts. */
  abandon(job: Job): void {
    this.#jobs.delete(job)
  }

  failAll(error: ServeError): void {
    for (const job of this.#remove([...this.#jobs])) job.fail(error)
  }

  close(): void {
    this.#batches.close()
  }

  #remove(jobs: Job[]): Job[] {
    for (const job of jobs) this.#jobs.delete(job)
    return jobs
  }
}
