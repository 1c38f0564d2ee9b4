import type { ModelStatus } from './operations.ts'

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
