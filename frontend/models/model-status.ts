import type { Model } from './model.ts'
import { modelFailed } from './model-failure.ts'
import type { ModelStatus } from './operations.ts'

/** A version as the dialects beside TorchServe's need it. */
export function statusOf(model: Model): ModelStatus {
  const { name, version, registeredAt, methods, prepared, envelope, workers } = model
  const ready = workers.ready > 0 || model.wakes
  const { failure } = workers
  return {
    ...{ name, version, registeredAt, ready, methods, config: prepared.modelConfig, envelope },
    failure: failure && modelFailed(name, failure),
  }
}
