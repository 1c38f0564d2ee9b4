import type { Model } from './model.ts'
import type { ModelStatus } from './operations.ts'

/** A version as the dialects beside TorchServe's need it. */
export function statusOf(model: Model): ModelStatus {
  const { name, version, registeredAt, dialects } = model
  const ready = model.workers.ready > 0
  const { prepared, envelope } = model
  return { name, version, registeredAt, ready, dialects, config: prepared.modelConfig, envelope }
}
