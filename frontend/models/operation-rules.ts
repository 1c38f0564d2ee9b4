import { ServeError } from '../../common/errors.ts'
import type { Model } from './model.ts'
import type { ModelSettings } from './model-settings.ts'
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

/** Worker processes of a model version. */
export const MAX_WORKERS = 256

/** A model version starts processes for each of its workers, and for each of their ranks. */
type Workers = Pick<ModelSettings, 'minWorkers' | 'maxWorkers' | 'parallelLevel'>

/**
 * Refuses more worker processes than the server allows one model version, whoever asks for them: a call, the
 * configuration, a model's file or a snapshot.
 * @throws ServeError INVALID_ARGUMENT
 */
export function checkWorkers({ minWorkers, maxWorkers, parallelLevel }: Workers): void {
  const ranks = Math.max(1, parallelLevel)
  if (Math.max(minWorkers, maxWorkers) * ranks <= MAX_WORKERS) return
  const processes = ranks === 1 ? '' : ` of ${ranks} processes each`
  throw new ServeError(
    'INVALID_ARGUMENT',
    `A model version must have at most ${Math.floor(MAX_WORKERS / ranks)} workers${processes}.`,
  )
}

/** Far beyond what a model can use; what grows with them would fill the memory before. */
const MOST: readonly (readonly [keyof ModelSettings, number])[] = [
  ['batchSize', 10_000],
  ['maxConcurrency', 10_000],
  ['jobQueueSize', 1_000_000],
  ['maxNumSequence', 100_000],
  ['maxSequenceJobQueueSize', 100_000],
]

/** Refuses settings beyond their largest value. @throws ServeError INVALID_ARGUMENT */
export function checkSettings(settings: ModelSettings): void {
  for (const [name, most] of MOST) {
    if ((settings[name] as number) <= most) continue
    throw new ServeError('INVALID_ARGUMENT', `${name} must be at most ${most}.`)
  }
}

const MAX_ITEMS = 100

/** A part of a list, and the start of the next one if there may be more. */
export interface Page<T> {
  nextPageToken?: string
  items: T[]
}

/**
 * One page of a list. `limit` and `nextPageToken` out of range fall back to 100 and 0. As in TorchServe, a
 * full last page has a token, which leads to an empty page.
 */
export function pageOf<T>(list: readonly T[], limit = MAX_ITEMS, nextPageToken = 0): Page<T> {
  const size = limit < 0 || limit > MAX_ITEMS ? MAX_ITEMS : limit
  const offset = Math.max(0, nextPageToken)
  const items = list.slice(offset, offset + size)
  return offset + size > list.length ? { items } : { nextPageToken: String(offset + size), items }
}
