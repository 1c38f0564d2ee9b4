import { ServeError } from '../../protocol/errors.ts'
import type { Model } from './model.ts'
import type { OperationResult } from './operations.ts'

/** The workers of a model did not start: TorchServe's sentence, with the cause. */
export function startFailure(model: Model, error: unknown): ServeError {
  const cause = ServeError.from(error)
  const message = `Failed to start workers for model ${model.name} version: ${model.version}. ${cause.message}`
  return new ServeError(cause.code === 'OUT_OF_MEMORY' ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED', message, {
    cause: error,
    detail: cause.detail,
  })
}

export function done(message: string): OperationResult {
  return { state: 'done', message }
}
