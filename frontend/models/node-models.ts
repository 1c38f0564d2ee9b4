import type { Model, NodeOrigin } from './model.ts'
import type { RegisterRequest } from './operations.ts'

/** What workflows need of the models: each node is a model. */
export interface NodeModels {
  /**
   * Registers a model and waits until its workers have loaded it. The location of `functions` is trusted;
   * that of a `model` obeys the rules for clients.
   * @throws ServeError like a register request; cleans up first
   */
  addNode(request: RegisterRequest, node: NodeOrigin): Promise<Model>
  /**
   * Unregisters exactly this model; its running jobs get `graceMs` milliseconds. @throws ServeError
   * CLEANUP_TIMEOUT
   */
  removeNode(model: Model, graceMs: number): Promise<void>
}
