import type { Principal } from '../auth/principal.ts'
import type { Job } from '../jobs/job.ts'
import { modelNotFound, workflowNotFound } from '../models/model-errors.ts'
import type {
  IndexEntry,
  ModelDescription,
  ModelList,
  ModelOperations,
  ModelStatus,
  OperationResult,
  RegisterRequest,
  RepositoryOperations,
  Routed,
  RoutedRequest,
  ScaleRequest,
  TrafficOperations,
} from '../models/operations.ts'
import type {
  RegisterWorkflowRequest,
  WorkflowDescription,
  WorkflowList,
  WorkflowOperations,
} from '../workflows/operations.ts'

/**
 * The models as a caller knows them that may use only some: for all others the answer is that of a model that
 * does not exist, whether it does or not.
 */
export class PermittedModels implements ModelOperations {
  readonly repository: RepositoryOperations
  readonly traffic: TrafficOperations
  readonly #models: ModelOperations
  readonly #principal: Principal

  constructor(models: ModelOperations, principal: Principal) {
    this.#models = models
    this.#principal = principal
    this.repository = new PermittedRepository(models.repository, principal)
    this.traffic = models.traffic
  }

  submit(job: Job): void {
    this.#check(job.request.modelName)
    this.#models.submit(job, this.#principal)
  }

  route(request: RoutedRequest): Routed {
    this.#check(request.modelName)
    return this.#models.route(request, this.#principal)
  }

  register(request: RegisterRequest): Promise<OperationResult> {
    return this.#models.register(request)
  }

  scale(request: ScaleRequest): Promise<OperationResult> {
    return this.#models.scale(request)
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    return this.#models.setDefault(modelName, modelVersion)
  }

  unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    return this.#models.unregister(modelName, modelVersion)
  }

  list(limit?: number, nextPageToken?: number): ModelList {
    return this.#models.list(limit, nextPageToken, this.#sees)
  }

  async describe(
    modelName: string,
    modelVersion?: string,
    customized?: boolean,
  ): Promise<ModelDescription[]> {
    this.#check(modelName)
    return this.#models.describe(modelName, modelVersion, customized)
  }

  /** Of the whole server, for load balancers: it names no model. */
  health(): 'Healthy' | 'Unhealthy' {
    return this.#models.health()
  }

  status(modelName: string, modelVersion?: string): ModelStatus {
    this.#check(modelName)
    return this.#models.status(modelName, modelVersion)
  }

  statuses(): ModelStatus[] {
    return this.#models.statuses().filter(({ name }) => this.#sees(name))
  }

  loadedAtStartup(): string[] {
    return this.#models.loadedAtStartup().filter(this.#sees)
  }

  unloadedAtStartup(): string[] {
    return this.#models.unloadedAtStartup().filter(this.#sees)
  }

  readonly #sees = (name: string): boolean => this.#principal.sees(name)

  /** @throws ServeError MODEL_NOT_FOUND */
  readonly #check = (name: string): void => {
    if (!this.#principal.sees(name)) throw modelNotFound(name)
  }
}

class PermittedRepository implements RepositoryOperations {
  readonly #repository: RepositoryOperations
  readonly #principal: Principal

  constructor(repository: RepositoryOperations, principal: Principal) {
    this.#repository = repository
    this.#principal = principal
  }

  async index(onlyReady?: boolean): Promise<IndexEntry[]> {
    return (await this.#repository.index(onlyReady)).filter(({ name }) => this.#principal.sees(name))
  }

  load(modelName: string): Promise<void> {
    return this.#repository.load(modelName)
  }

  unload(modelName: string): Promise<void> {
    return this.#repository.unload(modelName)
  }
}

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
