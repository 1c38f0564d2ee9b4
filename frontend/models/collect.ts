import type { ServeError } from '../../common/errors.ts'
import { tryParseJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import { newRequestId } from '../jobs/job-request.ts'
import { Job } from '../jobs/job.ts'
import type { Model } from './model.ts'
import { noWorker } from './no-worker.ts'
import type { ReplySink } from '../jobs/reply-sink.ts'

/**
 * Asks a worker for its handler's metadata. Anything but a JSON object becomes `{}`, as in TorchServe.
 * @throws ServeError NO_WORKER when no worker has loaded the model, MODEL_FAILED, and errors of the handler
 */
export async function customizedMetadata(model: Model): Promise<Record<string, unknown>> {
  const body = await new Promise<Uint8Array>((resolve, reject) => {
    const job = new Job(
      {
        requestId: newRequestId(),
        modelName: model.name,
        modelVersion: model.version,
        method: 'describe',
        headers: '',
        parts: [],
      },
      new CollectingSink(resolve, reject),
    )
    // describe itself says how workers fare, so it does not wait for one.
    if (model.workers.ready === 0 && model.workers.failure === undefined && !model.wakes)
      throw noWorker(model.name, job)
    model.submit(job)
  })
  return objectOrEmpty(body)
}

function objectOrEmpty(body: Uint8Array): Record<string, unknown> {
  const value = tryParseJson(body)
  return isObject(value) ? value : {}
}

/** Takes the first response as the whole answer: describe does not stream. */
class CollectingSink implements ReplySink {
  readonly #resolve: (body: Uint8Array) => void
  readonly #reject: (error: ServeError) => void

  constructor(resolve: (body: Uint8Array) => void, reject: (error: ServeError) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  whole(_head: unknown, body: Uint8Array): void {
    this.#resolve(body)
  }

  open(): void {
    // The item follows in a later call.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    this.#resolve(chunk.slice(from, to))
    return true
  }

  close(): void {
    this.#resolve(new Uint8Array())
  }

  fail(error: ServeError): void {
    this.#reject(error)
  }
}
