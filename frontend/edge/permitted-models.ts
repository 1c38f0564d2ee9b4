import { ServeError } from '../../common/errors.ts'
import type { Principal } from '../auth/principal.ts'
import type { TrafficSettings } from '../config/traffic-settings.ts'
import type { Job } from '../jobs/job.ts'
import { modelNotFound, storedModelNotFound } from '../models/not-found.ts'
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
  TrafficDescription,
  TrafficOperations,
} from '../models/operations.ts'
import { checkArchive } from './permitted-archives.ts'

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
    this.traffic = new PermittedTraffic(models.traffic, this.#check)
  }

  submit(job: Job): void {
    this.#check(job.request.modelName)
    this.#models.submit(job, this.#principal)
  }

  route(request: RoutedRequest): Routed {
    this.#check(request.modelName)
    return this.#models.route(request, this.#principal)
  }

  async register(request: RegisterRequest): Promise<OperationResult> {
    const { modelName } = request
    // Without a name the archive decides, which nobody has read yet.
    if (modelName === undefined)
      throw new ServeError(
        'INVALID_ARGUMENT',
        'Parameter model_name is required: a caller with an API key, a JWT or a certificate names what it registers',
      )
    if (!this.#principal.sees(modelName)) throw notForThisName(modelName)
    checkArchive(request.url, this.#principal)
    return this.#models.register(request)
  }

  async scale(request: ScaleRequest): Promise<OperationResult> {
    this.#check(request.modelName)
    return this.#models.scale(request)
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    this.#check(modelName)
    return this.#models.setDefault(modelName, modelVersion)
  }

  async unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    this.#check(modelName)
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

  readonly #sees = (name: string): boolean => this.#principal.sees(name)

  /** @throws ServeError MODEL_NOT_FOUND */
  readonly #check = (name: string): void => {
    if (!this.#principal.sees(name)) throw modelNotFound(name)
  }
}

class PermittedTraffic implements TrafficOperations {
  readonly #traffic: TrafficOperations
  readonly #check: (name: string) => void

  constructor(traffic: TrafficOperations, check: (name: string) => void) {
    this.#traffic = traffic
    this.#check = check
  }

  async set(modelName: string, settings: TrafficSettings): Promise<TrafficDescription> {
    this.#check(modelName)
    return this.#traffic.set(modelName, settings)
  }

  describe(modelName: string): TrafficDescription {
    this.#check(modelName)
    return this.#traffic.describe(modelName)
  }

  async clear(modelName: string): Promise<TrafficDescription> {
    this.#check(modelName)
    return this.#traffic.clear(modelName)
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

  async load(modelName: string): Promise<void> {
    this.#check(modelName)
    return this.#repository.load(modelName)
  }

  async unload(modelName: string): Promise<void> {
    this.#check(modelName)
    return this.#repository.unload(modelName)
  }

  #check(name: string): void {
    if (!this.#principal.sees(name)) throw storedModelNotFound(name)
  }
}

/** The caller may not register it, whether the name is taken or not. */
export function notForThisName(name: string): ServeError {
  return new ServeError('INVALID_ARGUMENT', `This key does not allow the name ${name.slice(0, 200)}`)
}
