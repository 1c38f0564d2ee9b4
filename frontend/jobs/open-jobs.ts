import { ServeError } from '../../common/errors.ts'
import type { Job } from './job.ts'

const SHUTTING_DOWN = new ServeError('SHUTTING_DOWN', 'The server is shutting down')

/** How many jobs of one model have not ended, so that a stopping server can wait for them and then end them. */
export class OpenJobs {
  readonly #ended: (job: Job) => void
  readonly #jobs: () => Iterable<Job>
  #count = 0
  #onEmpty: (() => void) | undefined

  /** `ended` is called once for every job that was added, at its end; `jobs` looks up those that have not ended. */
  constructor(ended: (job: Job) => void, jobs: () => Iterable<Job>) {
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

  add(job: Job): void {
    if (job.ended) {
      this.#ended(job)
      return
    }
    this.#count += 1
    job.onEnd = this.#end
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
    this.#count -= 1
    this.#ended(job)
    if (this.#count === 0) this.#onEmpty?.()
  }
}
