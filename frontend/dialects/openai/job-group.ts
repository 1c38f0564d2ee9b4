import type { InputPart } from '../../../common/handler-methods.ts'
import type { HttpCall, OwnRequest } from '../../edge/http/http-call.ts'
import type { ReplySource } from '../../edge/http/http-reply.ts'
import type { Job } from '../../jobs/job.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'

/** What all jobs of a request have in common. */
export type CommonRequest = Omit<OwnRequest, 'method' | 'parts'>

/** The jobs of one request that needs several; they are cancelled together. */
export class JobGroup implements ReplySource {
  readonly #call: HttpCall
  readonly #common: CommonRequest
  readonly #jobs: Job[] = []

  constructor(call: HttpCall, common: CommonRequest) {
    this.#call = call
    this.#common = common
  }

  /** @throws ServeError, see ModelOperations.submit; earlier jobs of the group are cancelled then */
  submit(parts: InputPart[], sink: ReplySink): Job {
    const count = this.#jobs.length
    const { requestId: first, models } = this.#call
    const requestId = count === 0 ? first : `${first}/${count}`
    const job = this.#call.job({ ...this.#common, requestId, method: 'handle', parts }, sink)
    try {
      models.submit(job)
    } catch (error) {
      this.cancel('failed')
      throw error
    }
    this.#jobs.push(job)
    return job
  }

  cancel(reason: AbandonReason = 'client left'): void {
    for (const job of this.#jobs) job.cancel(reason)
  }

  drained(): void {
    for (const job of this.#jobs) job.drained()
  }
}
