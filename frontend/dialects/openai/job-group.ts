import { randomUUID } from 'node:crypto'
import { type AbandonReason, Job, type InferenceRequest, type InputPart } from '../../jobs/job.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import type { EventSource } from '../../edge/http/sse.ts'
import type { OpenAICall } from './call.ts'

/** The jobs of one request that needs several: they are cancelled together. */
export class JobGroup implements EventSource {
  readonly #models: ModelOperations
  readonly #facts: Omit<InferenceRequest, 'requestId' | 'parts'>
  readonly #jobs: Job[] = []

  constructor(models: ModelOperations, { model, modelVersion, headers, urlPath }: OpenAICall) {
    this.#models = models
    this.#facts = { modelName: model.name, modelVersion, method: 'handle', headers, urlPath }
  }

  /** @throws ServeError, see ModelOperations.submit; the jobs before it are cancelled then */
  submit(parts: InputPart[], sink: ReplySink): Job {
    const job = new Job({ ...this.#facts, requestId: randomUUID(), parts }, sink)
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
