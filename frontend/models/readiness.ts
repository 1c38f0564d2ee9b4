import { ServeError } from '../../common/errors.ts'
import type { ModelDescription, ModelOperations, ModelStatus } from './operations.ts'

/** What readiness needs of the models. */
export type ReadinessSource = Pick<
  ModelOperations,
  'describe' | 'health' | 'loadedAtStartup' | 'unloadedAtStartup'
>

/**
 * Whether one of the model's workers has loaded it, or a request would start one. TorchServe also counts
 * workers that are still loading.
 * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
 */
export async function isModelReady(
  models: ReadinessSource,
  name: string,
  version?: string,
): Promise<boolean> {
  const [model] = await models.describe(name, version).catch((error: unknown) => {
    if (['MODEL_NOT_READY', 'MODEL_FAILED'].includes(ServeError.from(error).code)) return []
    throw error
  })
  if (model === undefined) return false
  return hasReadyWorker(model) || model.scaling?.wakes === true
}

/**
 * Whether the server is healthy, every version of the start has been loaded once, and the default versions
 * that have workers can answer.
 */
export async function isServerReady(models: ReadinessSource): Promise<boolean> {
  if (models.health() !== 'Healthy' || models.unloadedAtStartup().length > 0) return false
  const described = await Promise.all(models.loadedAtStartup().map((name) => models.describe(name)))
  return described.every(([model]) => {
    const { minWorkers, maxWorkers, scaling } = model!
    const needsNone = maxWorkers === 0 ? undefined : scaling?.wakes
    return hasReadyWorker(model!) || (needsNone ?? minWorkers === 0)
  })
}

function hasReadyWorker({ workers }: ModelDescription): boolean {
  return workers.some(({ status }) => status === 'READY')
}

/** GET /v1/models: OpenAI's list and KServe's names in one object, because both protocols own the path. */
export function modelList(models: readonly ModelStatus[]): object {
  return { object: 'list', data: models.map(openaiModel), models: models.map(({ name }) => name) }
}

/** GET /v1/models/{m}: OpenAI's model, with KServe's `name` and `ready`. */
export function modelObject(model: ModelStatus): object {
  return { ...openaiModel(model), name: model.name, ready: model.ready }
}

function openaiModel({ name, registeredAt }: ModelStatus): object {
  return { id: name, object: 'model', created: Math.floor(registeredAt / 1000), owned_by: 'torchserve-ts' }
}
