import { ServeError } from '../../common/errors.ts'
import type { Job } from './job.ts'

/**
 * Every open job of the server by its request id. Models and workflows enter a job before they do anything with it and take it out at
 * its end. Ids are the server's own, so no two open jobs have the same.
 */
export class JobIndex {
  readonly #jobs = new Map<string, Job>()

  get size(): number {
    return this.#jobs.size
  }

  /** The open job of this id; undefined: none, or it has ended. */
  get(requestId: string): Job | undefined {
    return this.#jobs.get(requestId)
  }

  /** @throws ServeError INTERNAL when an open job has this id: nothing has changed then */
  enter(job: Job): void {
    const { requestId } = job.request
    if (this.#jobs.has(requestId)) throw new ServeError('INTERNAL', `A request ${requestId} is open already`)
    this.#jobs.set(requestId, job)
  }

  leave(job: Job): void {
    this.#jobs.delete(job.request.requestId)
  }
}
