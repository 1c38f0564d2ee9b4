import { ServeError } from '../../protocol/errors.ts'
import { type Job, type JobHolder, type JobLimits, jobLimits, type JobTimeouts } from './job.ts'

export interface JobQueueOptions {
  /** Jobs that may wait. */
  capacity: number
  /** Jobs that one batch may hold. */
  batchSize: number
  /** Milliseconds that the oldest job may wait for its batch to fill. */
  maxBatchDelay: number
  timeouts: JobTimeouts
}

/**
 * The bounded first-in-first-out queue of one model version, and the rule for its batches: a batch is ready when it is
 * full, or when its oldest job has waited maxBatchDelay. Nothing is locked while a batch fills: whichever worker has a
 * free slot takes what is ready.
 */
export class JobQueue implements JobHolder {
  /** Called whenever a batch may have become ready. */
  onReady: () => void = () => undefined
  /** Asked first where batches hold one job: whether a free worker takes it at once. */
  onSingle: (job: Job) => boolean = () => false
  readonly #options: JobQueueOptions
  readonly #limits: JobLimits
  readonly #jobs = new Set<Job>()
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

  /** @throws ServeError QUEUE_FULL with `refusal` as its message; the job has not been touched then. */
  add(job: Job, refusal: () => string): void {
    if (this.remainingCapacity <= 0) throw new ServeError('QUEUE_FULL', refusal())
    job.queued(this, this.#limits)
    if (this.#options.batchSize === 1 && this.#jobs.size === 0 && this.onSingle(job)) return
    this.#jobs.add(job)
    this.onReady()
    if (this.#jobs.has(job)) job.waits()
  }

  /** The next batch, oldest first; empty when none is ready. */
  take(): Job[] {
    const oldest = this.#oldest()
    if (oldest === undefined || !this.#ready(oldest)) return []
    if (this.#options.batchSize === 1 || alone(oldest)) return this.#remove([oldest])
    const batch: Job[] = []
    for (const job of this.#jobs) {
      if (alone(job) || batch.push(job) === this.#options.batchSize) break
    }
    return this.#remove(batch)
  }

  /** A job ended while it waited: it never starts. */
  abandon(job: Job): void {
    this.#jobs.delete(job)
  }

  drained(): void {
    // A waiting job has sent nothing.
  }

  /** The jobs that wait. */
  jobs(): Iterable<Job> {
    return this.#jobs
  }

  /** Ends every waiting job. */
  failAll(error: ServeError): void {
    for (const job of this.#remove([...this.#jobs])) job.fail(error)
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #oldest(): Job | undefined {
    for (const job of this.#jobs) return job
    return undefined
  }

  #ready(oldest: Job): boolean {
    if (this.#jobs.size >= this.#options.batchSize || alone(oldest)) return true
    const wait = oldest.createdAt + this.#options.maxBatchDelay - performance.now()
    if (wait <= 0) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.onReady()
    }, Math.ceil(wait))
    return false
  }

  #remove(jobs: Job[]): Job[] {
    for (const job of jobs) this.#jobs.delete(job)
    return jobs
  }
}

/** A describe asks the handler something else than predictions: it shares no batch. */
function alone(job: Job): boolean {
  return job.request.action === 'describe'
}
