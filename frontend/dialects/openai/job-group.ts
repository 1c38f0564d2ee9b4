import { Job } from '../../jobs/job.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import type { InputPart } from '../../../common/handler-methods.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import type { ReplySource } from '../../edge/http/http-reply.ts'
import type { OpenAICall } from './call.ts'

/** The jobs of one request that needs several; they are cancelled together. */
export class JobGroup implements ReplySource {
  readonly #models: ModelOperations
  readonly #facts: OpenAICall['facts']
  readonly #jobs: Job[] = []

  constructor({ exchange, facts }: Pick<OpenAICall, 'exchange' | 'facts'>) {
    this.#models = exchange.models
    this.#facts = facts
  }

  /** @throws ServeError, see ModelOperations.submit; earlier jobs of the group are cancelled then */
  submit(parts: InputPart[], sink: ReplySink): Job {
    const count = this.#jobs.length
    const { requestId: first } = this.#facts
    const requestId = count === 0 ? first : `${first}/${count}`
    const job = new Job({ ...this.#facts, requestId, method: 'handle', parts }, sink)
    try {
      this.#models.submit(job)
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
