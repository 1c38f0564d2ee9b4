import { ServeError } from '../../common/errors.ts'
import type { JobIndex } from './job-index.ts'

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

export class OpenRequests implements RequestOperations {
  readonly #jobs: JobIndex

  constructor(jobs: JobIndex) {
    this.#jobs = jobs
  }

  cancel(requestId: string): string {
    const job = this.#jobs.get(requestId)
    if (job === undefined)
      throw new ServeError('REQUEST_NOT_FOUND', `No open request has the id ${requestId.slice(0, 200)}`)
    job.abort(CANCELLED, 'operator')
    return job.request.modelName
  }
}
