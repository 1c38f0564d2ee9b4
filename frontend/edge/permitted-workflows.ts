import type { Principal } from '../auth/principal.ts'
import type { Job } from '../jobs/job.ts'
import { workflowNotFound } from '../models/model-errors.ts'
import type {
  RegisterWorkflowRequest,
  WorkflowDescription,
  WorkflowList,
  WorkflowOperations,
} from '../workflows/operations.ts'

/** The workflows as a caller knows them that may use only some; as PermittedModels. */
export class PermittedWorkflows implements WorkflowOperations {
  readonly #workflows: WorkflowOperations
  readonly #principal: Principal

  constructor(workflows: WorkflowOperations, principal: Principal) {
    this.#workflows = workflows
    this.#principal = principal
  }

  has(name: string): boolean {
    return this.#principal.sees(name) && this.#workflows.has(name)
  }

  submit(job: Job): void {
    this.#check(job.request.modelName)
    this.#workflows.submit(job)
  }

  register(request: RegisterWorkflowRequest): Promise<string> {
    return this.#workflows.register(request)
  }

  unregister(name: string): Promise<string> {
    return this.#workflows.unregister(name)
  }

  list(limit?: number, nextPageToken?: number): WorkflowList {
    return this.#workflows.list(limit, nextPageToken)
  }

  describe(name: string): WorkflowDescription[] {
    return this.#workflows.describe(name)
  }

  /** @throws ServeError WORKFLOW_NOT_FOUND */
  #check(name: string): void {
    if (!this.#principal.sees(name)) throw workflowNotFound(name)
  }
}
