import { ServeError } from '../../common/errors.ts'
import { startTimer } from '../../common/timer.ts'
import type { Job } from './job.ts'
import type { JobIndex } from './job-index.ts'

const SHUTTING_DOWN = new ServeError('SHUTTING_DOWN', 'The server is shutting down')

/** Jobs that a drain has failed. */
export interface CutJobs {
  readonly requests: number
  readonly streams: number
}

/**
 * The open jobs of one model or workflow. A stopping server waits for them and then ends them. They are also
 * in the server's index of jobs.
 */
export class OpenJobs {
  readonly #index: JobIndex
  readonly #ended: (job: Job) => void
  readonly #jobs: () => Iterable<Job>
  #count = 0
  /** Those who wait: a model that ends may be in a server that ends. */
  readonly #whenEmpty = new Set<() => void>()

  /** `ended` is called once per added job, at its end. `jobs` returns those that have not ended. */
  constructor(index: JobIndex, ended: (job: Job) => void, jobs: () => Iterable<Job>) {
    this.#index = index
    this.#ended = ended
    this.#jobs = jobs
  }

  get size(): number {
    return this.#count
  }

  /** The number of streams that have begun. */
  get streams(): number {
    return this.progress().streams
  }

  /** How many streams have begun, and what the open jobs have answered so far. */
  progress(): { streams: number; items: number; bytes: number } {
    const sum = { streams: 0, items: 0, bytes: 0 }
    for (const job of this.#jobs()) {
      if (job.streaming) sum.streams += 1
      sum.items += job.items
      sum.bytes += job.bytes
    }
    return sum
  }

  /** Adds a job before anything is done with it. @throws ServeError of JobIndex.enter */
  add(job: Job): void {
    this.#index.enter(job)
    this.#count += 1
    job.onEnd = this.#end
  }

  /** The job was rejected, so it was never open. */
  withdraw(job: Job): void {
    job.onEnd = undefined
    this.#leave(job)
  }

  /** Waits until all jobs have ended, for at most `graceMs`. @returns how much of it is left */
  async settled(graceMs: number): Promise<number> {
    if (this.#count === 0 || graceMs <= 0) return graceMs
    const begun = performance.now()
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer)
        this.#whenEmpty.delete(done)
        resolve()
      }
      const timer = startTimer(done, graceMs)
      this.#whenEmpty.add(done)
    })
    return Math.max(0, begun + graceMs - performance.now())
  }

  /**
   * Waits until all jobs have ended, for at most `graceMs`; then fails the rest with `reason`. Default: the
   * server is shutting down.
   * @returns how many it failed, and how many of them were streams
   */
  async drain(graceMs: number, reason = SHUTTING_DOWN): Promise<CutJobs> {
    await this.settled(graceMs)
    const rest = [...this.#jobs()]
    const streams = rest.filter((job) => job.streaming).length
    for (const job of rest) job.abort(reason, 'shutdown')
    return { requests: rest.length, streams }
  }

  readonly #end = (job: Job): void => {
    this.#leave(job)
    this.#ended(job)
    if (this.#count === 0) for (const done of this.#whenEmpty) done()
  }

  #leave(job: Job): void {
    this.#index.leave(job)
    this.#count -= 1
  }
}
