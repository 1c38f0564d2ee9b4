import type { Model } from './model.ts'
import type { ModelStatus } from './operations.ts'

/** A version as the dialects beside TorchServe's need it. */
export function statusOf(model: Model): ModelStatus {
  const { name, version, registeredAt, methods } = model
  const ready = model.workers.ready > 0
  const { prepared, envelope } = model
  return { name, version, registeredAt, ready, methods, config: prepared.modelConfig, envelope }
}
