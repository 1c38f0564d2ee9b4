import { ServeError } from '../../common/errors.ts'
import { PassingSet } from '../../common/maps.ts'
import { startTimer } from '../../common/timer.ts'
import type { Job, JobOwner } from './job.ts'
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
  readonly #owner: JobOwner
  readonly #jobs = new PassingSet<Job>()
  /** Those who wait: a model that ends may be in a server that ends. */
  readonly #whenEmpty = new Set<() => void>()

  /** @param owner of the jobs that are added */
  constructor(index: JobIndex, owner: JobOwner) {
    this.#index = index
    this.#owner = {
      ...owner,
      ended: (job) => {
        this.#leave(job)
        owner.ended(job)
        if (this.#jobs.size === 0) for (const done of this.#whenEmpty) done()
      },
    }
  }

  get size(): number {
    return this.#jobs.size
  }

  /** performance.now() at which the first of those that run went to a worker; undefined: none runs. */
  get runningSince(): number | undefined {
    let first = Infinity
    for (const { startedAt = Infinity } of this.#jobs) first = Math.min(first, startedAt)
    return first === Infinity ? undefined : first
  }

  /** The number of streams that have begun. */
  get streams(): number {
    return this.progress().streams
  }

  /** How many streams have begun, and what the open jobs have answered so far. */
  progress(): { streams: number; items: number; bytes: number } {
    const sum = { streams: 0, items: 0, bytes: 0 }
    for (const job of this.#jobs) {
      if (job.streaming) sum.streams += 1
      sum.items += job.items
      sum.bytes += job.bytes
    }
    return sum
  }

  /** Adds a job before anything is done with it. @throws ServeError of JobIndex.enter */
  add(job: Job): void {
    this.#index.enter(job)
    this.#jobs.add(job)
    job.ownedBy(this.#owner)
  }

  /** The job was rejected, so it was never open. */
  withdraw(job: Job): void {
    job.ownedBy(undefined)
    this.#leave(job)
  }

  /** Waits until all jobs have ended, for at most `graceMs`. @returns how much of it is left */
  async settled(graceMs: number): Promise<number> {
    if (this.#jobs.size === 0 || graceMs <= 0) return graceMs
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
    const rest = [...this.#jobs]
    const streams = rest.filter((job) => job.streaming).length
    for (const job of rest) job.abort(reason, 'shutdown')
    return { requests: rest.length, streams }
  }

  #leave(job: Job): void {
    this.#index.leave(job)
    this.#jobs.delete(job)
  }
}
