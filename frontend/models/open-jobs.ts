import { ServeError } from '../../protocol/errors.ts'
import type { Job } from './job.ts'

/** The jobs of one model that have not ended, so that a stopping server can wait for them and then end them. */
export class OpenJobs {
  readonly #jobs = new Set<Job>()
  readonly #ended: (job: Job) => void
  #onEmpty: (() => void) | undefined

  /** `ended` is called once for every job that was added, at its end. */
  constructor(ended: (job: Job) => void) {
    this.#ended = ended
  }

  get size(): number {
    return this.#jobs.size
  }

  /** How many are streams that have begun. */
  get streams(): number {
    let count = 0
    for (const job of this.#jobs) if (job.streaming) count += 1
    return count
  }

  add(job: Job): void {
    if (job.ended) {
      this.#ended(job)
      return
    }
    this.#jobs.add(job)
    job.onEnd = this.#end
  }

  /** Waits until all have ended, at most `graceMs`; the rest is shut down then. */
  async drain(graceMs: number): Promise<void> {
    if (this.#jobs.size > 0 && graceMs > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs)
        this.#onEmpty = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    }
    for (const job of [...this.#jobs])
      job.abort(new ServeError('SHUTTING_DOWN', 'The server is shutting down'), 'shutdown')
  }

  readonly #end = (job: Job): void => {
    this.#jobs.delete(job)
    this.#ended(job)
    if (this.#jobs.size === 0) this.#onEmpty?.()
  }
}
