import { ServeError } from '../../common/errors.ts'
import type { Job } from './job.ts'

/**
 * Every open job of the server by request id. Models and workflows add a job before they do anything with it,
 * and remove it at its end. The server chooses the ids, so they are unique.
 */
export class JobIndex {
  readonly #jobs = new Map<string, Job>()

  get size(): number {
    return this.#jobs.size
  }

  /** The open job with this id; undefined if there is none or it has ended. */
  get(requestId: string): Job | undefined {
    return this.#jobs.get(requestId)
  }

  /** @throws ServeError INTERNAL when an open job already has this id; the index is unchanged then */
  enter(job: Job): void {
    const { requestId } = job.request
    if (this.#jobs.has(requestId)) throw new ServeError('INTERNAL', `Request ${requestId} is already open`)
    this.#jobs.set(requestId, job)
  }

  leave(job: Job): void {
    this.#jobs.delete(job.request.requestId)
  }
}
