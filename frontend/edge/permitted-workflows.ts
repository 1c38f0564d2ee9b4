import { ServeError } from '../../common/errors.ts'
import type { Principal } from '../auth/principal.ts'
import type { Job } from '../jobs/job.ts'
import { workflowNotFound } from '../models/not-found.ts'
import type {
  RegisterWorkflowRequest,
  WorkflowDescription,
  WorkflowList,
  WorkflowOperations,
} from '../workflows/operations.ts'
import { checkArchive } from './permitted-archives.ts'
import { notForThisName } from './permitted-models.ts'

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

  async register(request: RegisterWorkflowRequest): Promise<string> {
    const { workflowName } = request
    if (workflowName === undefined)
      throw new ServeError(
        'INVALID_ARGUMENT',
        'Parameter workflow_name is required: a caller with an API key, a JWT or a certificate names what it registers',
      )
    if (!this.#principal.sees(workflowName)) throw notForThisName(workflowName)
    checkArchive(request.url, this.#principal)
    return this.#workflows.register(request, (url) => checkArchive(url, this.#principal))
  }

  async unregister(name: string): Promise<string> {
    this.#check(name)
    return this.#workflows.unregister(name)
  }

  list(limit?: number, nextPageToken?: number): WorkflowList {
    return this.#workflows.list(limit, nextPageToken, (name) => this.#principal.sees(name))
  }

  describe(name: string): WorkflowDescription[] {
    this.#check(name)
    return this.#workflows.describe(name)
  }

  /** @throws ServeError WORKFLOW_NOT_FOUND */
  #check(name: string): void {
    if (!this.#principal.sees(name)) throw workflowNotFound(name)
  }
}
