import { type AbandonReason, Job, type JobRequest, type InputPart } from '../../jobs/job.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import type { ReplySource } from '../../edge/http/http-reply.ts'
import type { OpenAICall } from './call.ts'

/** The jobs of one request that needs several; they are cancelled together. */
export class JobGroup implements ReplySource {
  readonly #models: ModelOperations
  readonly #facts: Omit<JobRequest, 'requestId' | 'parts'>
  readonly #jobs: Job[] = []
  readonly #requestId: string

  constructor(models: ModelOperations, call: OpenAICall) {
    const { exchange, model, modelVersion, routedTo, headers, credentials, urlPath } = call
    this.#requestId = exchange.requestId
    this.#models = models
    const asked = { modelName: model.name, modelVersion, routedTo, headers, credentials, urlPath }
    this.#facts = { dialect: 'openai', sender: exchange, ...asked, method: 'handle' }
  }

  /** @throws ServeError, see ModelOperations.submit; earlier jobs of the group are cancelled then */
  submit(parts: InputPart[], sink: ReplySink): Job {
    const count = this.#jobs.length
    const requestId = count === 0 ? this.#requestId : `${this.#requestId}/${count}`
    const job = new Job({ ...this.#facts, requestId, parts }, sink)
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
