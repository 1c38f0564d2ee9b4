import { PassingSet } from '../../common/maps.ts'
import type { ServeError } from '../../common/errors.ts'
import {
  type Backlog,
  type BatchOwner,
  BatchPolicy,
  type BatchRule,
  goesAlone,
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

/** A job with more input waits in the frontend only: at a worker, the input would be kept twice. Bytes. */
const MAX_BYTES_AT_WORKER = 65_536

/**
 * The bounded first-in-first-out queue of one model version. Any worker with a free slot takes the batch that
 * is ready. A full batch may also wait at a busy worker, so that the worker does not idle between two
 * (docs/batching.md); its jobs are queued until the worker begins it.
 */
export class JobQueue implements Scheduler, BatchOwner {
  readonly #options: JobQueueOptions
  readonly #limits: JobLimits
  #jobs = new PassingSet<Job>()
  /** Queued jobs that wait at a worker. */
  readonly #atWorkers = new PassingSet<Job>()
  readonly #batches: BatchPolicy
  #workers: readonly JobRunner[] = []

  constructor(options: JobQueueOptions) {
    this.#options = options
    this.#limits = jobLimits(options.timeouts)
    this.#batches = new BatchPolicy(options, () => this.hand())
  }

  get pending(): number {
    return this.#jobs.size + this.#atWorkers.size
  }

  get remainingCapacity(): number {
    return this.#options.capacity - this.pending
  }

  /** What waits at a worker begins there soon, or comes back. */
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
    this.#handAhead()
  }

  /** Batches wait at busy workers only when they are full: others may still grow here. */
  #handAhead(): void {
    for (;;) {
      const worker = leastLoaded(this.#workers, ({ room }) => room)
      if (worker === undefined) return
      const batch = this.#takeFull()
      if (batch.length === 0) return
      for (const job of batch) this.#atWorkers.add(job)
      worker.runLater(batch, this)
    }
  }

  #takeFull(): Job[] {
    const { batchSize } = this.#options
    if (this.#jobs.size < batchSize) return []
    const batch = this.#batches.take(this.#jobs, this.#jobs.size)
    return batch.length === batchSize && batch.every(mayWaitAtWorker) ? this.#remove(batch) : []
  }

  began(jobs: readonly Job[]): void {
    for (const job of jobs) this.#atWorkers.delete(job)
  }

  returned(jobs: readonly Job[]): void {
    const back = jobs.filter((job) => this.#atWorkers.delete(job))
    for (const job of back) job.heldBy(this)
    const later = [...this.#jobs]
    this.#jobs = new PassingSet()
    for (const job of [...back, ...later]) this.#jobs.add(job)
    this.hand()
  }

  /** The next batch, oldest job first; empty if none is ready. */
  take(): Job[] {
    return this.#remove(this.#batches.take(this.#jobs, this.#jobs.size))
  }

  /** The job ended while it waited, so it never starts. */
  abandon(job: Job): void {
    this.#jobs.delete(job)
    this.#atWorkers.delete(job)
  }

  failAll(error: ServeError): void {
    for (const job of this.#remove([...this.#jobs])) job.fail(error)
    for (const job of [...this.#atWorkers]) job.abort(error, 'shutdown')
  }

  close(): void {
    this.#batches.close()
  }

  #remove(jobs: Job[]): Job[] {
    for (const job of jobs) this.#jobs.delete(job)
    return jobs
  }
}

function mayWaitAtWorker(job: Job): boolean {
  const { feed, parts } = job.request
  if (feed !== undefined || goesAlone(job)) return false
  let bytes = 0
  for (const part of parts) bytes += part.data.byteLength
  return bytes <= MAX_BYTES_AT_WORKER
}
