import { ServeError } from '../../common/errors.ts'
import { type Job, type JobLimits, jobLimits, type JobTimeouts } from './job.ts'
import { JobList } from './job-list.ts'
import { freest, goesAlone, type JobRunner, type Scheduler } from './scheduler.ts'

export interface JobQueueOptions {
  /** Maximum number of waiting jobs. */
  capacity: number
  /** Maximum number of jobs per batch. */
  batchSize: number
  /** Milliseconds that the oldest job may wait for its batch to fill. */
  maxBatchDelay: number
  timeouts: JobTimeouts
  /** The message for a client whose job is rejected. */
  refusal(job: Job): string
}

/**
 * The bounded first-in-first-out queue of one model version, and the rule for its batches: a batch is ready
 * when it is full, or when its oldest job has waited maxBatchDelay. Any worker with a free slot takes the
 * batch that is ready.
 */
export class JobQueue implements Scheduler {
  readonly #options: JobQueueOptions
  readonly #limits: JobLimits
  readonly #jobs = new JobList()
  #workers: readonly JobRunner[] = []
  #timer: NodeJS.Timeout | undefined

  constructor(options: JobQueueOptions) {
    this.#options = options
    this.#limits = jobLimits(options.timeouts)
  }

  get pending(): number {
    return this.#jobs.size
  }

  get remainingCapacity(): number {
    return this.#options.capacity - this.#jobs.size
  }

  add(job: Job): void {
    if (this.remainingCapacity <= 0) throw new ServeError('QUEUE_FULL', this.#options.refusal(job))
    job.queued(this, this.#limits)
    if (this.#options.batchSize === 1 && this.#jobs.size === 0 && this.#runAtOnce(job)) return
    this.#jobs.add(job)
    this.hand()
    if (this.#jobs.has(job)) job.waits()
  }

  couldStart(): boolean {
    return this.#options.batchSize === 1 && this.#jobs.size === 0 && freest(this.#workers) !== undefined
  }

  serve(workers: readonly JobRunner[]): void {
    this.#workers = workers
  }

  /** Dispatches while a worker has a free slot and a batch is ready. */
  hand(): void {
    for (;;) {
      const worker = freest(this.#workers)
      if (worker === undefined) return
      const batch = this.take()
      if (batch.length === 0) return
      worker.run(batch)
    }
  }

  workerLost(): void {
    // Any worker can take these jobs.
  }

  /** The next batch, oldest job first; empty if none is ready. */
  take(): Job[] {
    const oldest = this.#jobs.first
    if (oldest === undefined || !this.#ready(oldest)) return []
    if (this.#options.batchSize === 1 || goesAlone(oldest)) return this.#remove([oldest])
    const batch: Job[] = []
    for (const job of this.#jobs) {
      if (goesAlone(job) || batch.push(job) === this.#options.batchSize) break
    }
    return this.#remove(batch)
  }

  /** The job ended while it waited, so it never starts. */
  abandon(job: Job): void {
    this.#jobs.delete(job)
  }

  drained(): void {
    // A waiting job sends nothing, so there is nothing to resume.
  }

  jobs(): Iterable<Job> {
    return this.#jobs
  }

  failAll(error: ServeError): void {
    for (const job of this.#remove([...this.#jobs])) job.fail(error)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #runAtOnce(job: Job): boolean {
    const worker = freest(this.#workers)
    worker?.run([job])
    return worker !== undefined
  }

  #ready(oldest: Job): boolean {
    if (this.#jobs.size >= this.#options.batchSize || goesAlone(oldest)) return true
    const wait = oldest.createdAt + this.#options.maxBatchDelay - performance.now()
    if (wait <= 0) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.hand()
    }, Math.ceil(wait))
    return false
  }

  #remove(jobs: Job[]): Job[] {
    for (const job of jobs) this.#jobs.delete(job)
    return jobs
  }
}
