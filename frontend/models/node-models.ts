import type { Model, WorkflowNodeKind } from './model.ts'
import type { RegisterRequest } from './operations.ts'

/** What workflows ask of the models: their nodes are models of their own. */
export interface NodeModels {
  /**
   * Registers a model and waits until its workers are loaded; the location of `functions` is trusted, that of a `model` obeys the
   * rules for clients.
   * @throws ServeError like a register request; nothing is left behind then
   */
  addNode(request: RegisterRequest, kind: WorkflowNodeKind): Promise<Model>
  /** Unregisters exactly this model; its running jobs get `graceMs`. @throws ServeError CLEANUP_TIMEOUT */
  removeNode(model: Model, graceMs: number): Promise<void>
}
