import { ServeError } from '../../common/errors.ts'
import type { Model } from './model.ts'
import type { OperationResult, ScaleRequest } from './operations.ts'

/** TorchServe's sentence for workers that did not start, with the cause. */
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

/**
 * The number of workers that a scale call asks for.
 * @throws ServeError INTERNAL, INVALID_ARGUMENT with TorchServe's sentences
 */
export function workerBounds({ minWorker: min = 1, maxWorker: max = min }: ScaleRequest): {
  min: number
  max: number
} {
  if (min < 0) throw new ServeError('INTERNAL', 'min_worker cannot be negative.')
  if (max < min) throw new ServeError('INVALID_ARGUMENT', 'max_worker cannot be less than min_worker.')
  return { min, max }
}
