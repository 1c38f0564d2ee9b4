import { ServeError } from '../../common/errors.ts'
import type { Job } from './job.ts'
import type { JobIndex } from './job-index.ts'

const SHUTTING_DOWN = new ServeError('SHUTTING_DOWN', 'The server is shutting down')

/** The open jobs of one model or workflow: counted, so that a stopping server can wait for them and then end them, and in the server's index. */
export class OpenJobs {
  readonly #index: JobIndex
  readonly #ended: (job: Job) => void
  readonly #jobs: () => Iterable<Job>
  #count = 0
  #onEmpty: (() => void) | undefined

  /** `ended` is called once for every job that was added, at its end; `jobs` looks up those that have not ended. */
  constructor(index: JobIndex, ended: (job: Job) => void, jobs: () => Iterable<Job>) {
    this.#index = index
    this.#ended = ended
    this.#jobs = jobs
  }

  get size(): number {
    return this.#count
  }

  /** How many are streams that have begun. */
  get streams(): number {
    let count = 0
    for (const job of this.#jobs()) if (job.streaming) count += 1
    return count
  }

  /** Before anything is done with the job. @throws ServeError INTERNAL when an open job has its id */
  add(job: Job): void {
    this.#index.enter(job)
    this.#count += 1
    job.onEnd = this.#end
  }

  /** The job was refused: it was never open. */
  withdraw(job: Job): void {
    job.onEnd = undefined
    this.#leave(job)
  }

  /** Waits until all have ended, at most `graceMs`; the rest fails with `reason` then. Default: the server is shutting down. */
  async drain(graceMs: number, reason = SHUTTING_DOWN): Promise<void> {
    if (this.#count > 0 && graceMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs)
        this.#onEmpty = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (const job of [...this.#jobs()]) job.abort(reason, 'shutdown')
  }

  readonly #end = (job: Job): void => {
    this.#leave(job)
    this.#ended(job)
    if (this.#count === 0) this.#onEmpty?.()
  }

  #leave(job: Job): void {
    this.#index.leave(job)
    this.#count -= 1
  }
}
