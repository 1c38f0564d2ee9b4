import type { ModelOperations } from './operations.ts'

/** What readiness asks of the models. */
export type ReadinessSource = Pick<ModelOperations, 'describe' | 'health' | 'loadedAtStartup'>

/**
 * Whether a model can answer now: one of its workers has loaded it. (TorchServe counts workers that still load: spec 9, row 13.)
 * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
 */
export async function isModelReady(
  models: ReadinessSource,
  name: string,
  version?: string,
): Promise<boolean> {
  const [model] = await models.describe(name, version)
  return model!.workers.some(({ status }) => status === 'READY')
}

/** Whether the server can do its work: it is healthy, and every model of the start that should have workers can answer. */
export async function isServerReady(models: ReadinessSource): Promise<boolean> {
  if (models.health() !== 'Healthy') return false
  const described = await Promise.all(models.loadedAtStartup().map((name) => models.describe(name)))
  return described.every(([model]) => {
    return model!.minWorkers === 0 || model!.workers.some(({ status }) => status === 'READY')
  })
}
