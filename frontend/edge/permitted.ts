import type { Principal } from '../auth/principal.ts'
import type { ModelOperations } from '../models/operations.ts'
import type { WorkflowOperations } from '../workflows/operations.ts'
import { PermittedModels } from './permitted-models.ts'
import { PermittedWorkflows } from './permitted-workflows.ts'

/** What dialects can do with models and workflows. */
export interface Operations {
  readonly models: ModelOperations
  readonly workflows: WorkflowOperations
}

/** The same for one caller: `operations` itself, unless it may use only some models. */
export function permitted(operations: Operations, principal: Principal): Operations {
  if (!principal.isNarrow) return operations
  return {
    models: new PermittedModels(operations.models, principal),
    workflows: new PermittedWorkflows(operations.workflows, principal),
  }
}
