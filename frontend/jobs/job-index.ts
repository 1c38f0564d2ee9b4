import { ServeError } from '../../common/errors.ts'
import { PassingMap } from '../../common/maps.ts'
import { type InputBudget, inputBytes } from './input-budget.ts'
import type { Job } from './job.ts'

/** The open requests of the whole server, as an operator knows them: by the id in `x-request-id`. */
export interface RequestOperations {
  /**
   * Ends a request: its handler is told to stop, and its client gets the error CANCELLED in its dialect.
   * @returns the name of its model or workflow
   * @throws ServeError REQUEST_NOT_FOUND when no open request has this id
   */
  cancel(requestId: string): string
}

const CANCELLED = new ServeError('CANCELLED', 'The request was cancelled by an operator')

/**
 * Every open job of the server by request id. Models and workflows add a job before they do anything with it,
 * and remove it at its end. The server chooses the ids, so they are unique.
 */
export class JobIndex implements RequestOperations {
  readonly #jobs = new PassingMap<string, Job>()
  readonly #budget: InputBudget | undefined

  /** @param budget of the inputs of all open jobs; absent: no limit */
  constructor(budget?: InputBudget) {
    this.#budget = budget
  }

  get size(): number {
    return this.#jobs.size
  }

  /** Every open job, the oldest first. */
  [Symbol.iterator](): Iterator<Job> {
    return this.#jobs.values()
  }

  /** The open job with this id; undefined if there is none or it has ended. */
  get(requestId: string): Job | undefined {
    return this.#jobs.get(requestId)
  }

  cancel(requestId: string): string {
    const job = this.#jobs.get(requestId)
    if (job === undefined)
      throw new ServeError('REQUEST_NOT_FOUND', `No open request has the id ${requestId.slice(0, 200)}`)
    job.abort(CANCELLED, 'operator')
    return job.request.modelName
  }

  /**
   * @throws ServeError INTERNAL when an open job already has this id, QUEUE_FULL when the inputs of all jobs
   *   have too many bytes; the index is unchanged then
   */
  enter(job: Job): void {
    const { requestId } = job.request
    if (this.#jobs.has(requestId)) throw new ServeError('INTERNAL', `Request ${requestId} is already open`)
    this.#budget?.hold(job, inputBytes(job.request))
    this.#jobs.set(requestId, job)
  }

  leave(job: Job): void {
    const { requestId } = job.request
    if (this.#jobs.get(requestId) !== job) return
    job.budget?.release(job)
    job.budget = undefined
    this.#jobs.delete(requestId)
  }
}
