import { ServeError } from '../../common/errors.ts'
import type { Job } from '../jobs/job.ts'
import type { Model, NodeOrigin } from './model.ts'
import { statusOf } from './describe.ts'
import { modelNotFound, stillLoading, told } from './model-errors.ts'
import type { Caller, Routed, RoutedRequest } from './operations.ts'
import { chooseVersion, needsChoice, type Traffic, type Versions } from './traffic.ts'

/** All models by name and version. One version of each name is its default. */
export class Registry {
  /** Models of the start are still being loaded, so a model that is not here may be one of them. */
  incomplete = false
  /** Why a model of the start is not here, by name and version; undefined: nobody knows. */
  failure: (name: string, version?: string) => ServeError | undefined = () => undefined
  readonly #models = new Map<string, Versions>()
  readonly #weightLost: (model: Model, weight: number) => void

  /** `weightLost`: a version is gone that requests were sent to by weight. */
  constructor(weightLost: (model: Model, weight: number) => void = () => undefined) {
    this.#weightLost = weightLost
  }

  /**
   * Adds a version; the first one of a name becomes its default. Replaces the version with the same name and
   * number, and returns the replaced one.
   */
  put(model: Model): Model | undefined {
    let versions = this.#models.get(model.name)
    if (versions === undefined) {
      versions = { default: model.version, byVersion: new Map(), traffic: undefined }
      this.#models.set(model.name, versions)
    }
    const old = versions.byVersion.get(model.version)
    versions.byVersion.set(model.version, model)
    setWeights(versions)
    return old === model ? undefined : old
  }

  /** @throws ServeError MODEL_NOT_READY */
  checkComplete(): void {
    if (this.incomplete) throw stillLoading()
  }

  /** @param version default: any */
  has(name: string, version?: string): boolean {
    const versions = this.#models.get(name)?.byVersion
    return version === undefined ? versions !== undefined : (versions?.has(version) ?? false)
  }

  /** @throws ServeError CONFLICT when the version is already registered */
  checkFree(name: string, version: string): void {
    if (this.has(name, version)) {
      throw new ServeError('CONFLICT', `Model version ${version} is already registered for model ${name}`)
    }
  }

  /** @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND */
  get(name: string, version?: string): Model {
    return this.#versionOf(this.#versions(name), name, version)
  }

  /** Submits a job to its version. @throws ServeError as ModelOperations.submit */
  submit(job: Job, caller: Caller | undefined): void {
    const { request } = job
    const versions = this.#versions(request.modelName)
    const model = this.#versionFor(versions, request, caller)
    if (request.modelVersion === undefined && versions.traffic !== undefined) {
      job.routed(model.version)
      // A version that is not in the weights still gets the requests of its open sequences.
      if (model.traffic !== undefined) {
        model.traffic.requests += 1
        model.metrics.routed()
      }
    }
    model.submit(job)
  }

  /** The version of a request, see ModelOperations. @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND */
  route(request: RoutedRequest, caller: Caller | undefined): Routed {
    const versions = this.#versions(request.modelName)
    const model = this.#versionFor(versions, request, caller)
    const isChosen = request.modelVersion === undefined && needsChoice(versions)
    return {
      status: statusOf(model),
      routedTo: isChosen ? model.version : undefined,
      byWeight: isChosen && versions.traffic !== undefined,
    }
  }

  /** The weights of a name; undefined: none. @throws ServeError MODEL_NOT_FOUND */
  traffic(name: string): Traffic | undefined {
    return this.#versions(name).traffic
  }

  /**
   * Other weights, or none. Requests that have been sent stay where they are.
   * @throws ServeError MODEL_NOT_FOUND
   */
  setTraffic(name: string, traffic: Traffic | undefined): void {
    const versions = this.#versions(name)
    versions.traffic = traffic
    setWeights(versions)
  }

  /** The weights of every name that has some. */
  allTraffic(): Map<string, Traffic> {
    const found = [...this.#models].flatMap(([name, { traffic }]) =>
      traffic === undefined ? [] : [[name, traffic] as const],
    )
    return new Map(found)
  }

  /** All versions of a name. @throws ServeError MODEL_NOT_FOUND */
  versions(name: string): Model[] {
    return [...this.#versions(name).byVersion.values()]
  }

  /**
   * Makes a version the default of its name.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND (its message has no colons here, as in TorchServe)
   */
  setDefault(name: string, version: string): void {
    const versions = this.#versions(name)
    if (!versions.byVersion.has(version)) {
      const message = `Model version ${told(version)} does not exist for model ${name}`
      throw this.#absent(name, version, new ServeError('VERSION_NOT_FOUND', message))
    }
    versions.default = version
  }

  /**
   * Removes a version.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, DEFAULT_VERSION; CONFLICT when it has a weight or
   * belongs to a workflow
   */
  remove(name: string, version?: string): Model {
    const model = this.get(name, version)
    const versions = this.#versions(name)
    if (model.workflowNode !== undefined) throw nodeError(model, model.workflowNode)
    if (versions.byVersion.size > 1 && versions.default === model.version)
      throw new ServeError('DEFAULT_VERSION', `Cannot remove default version for model ${name}`)
    if (versions.byVersion.size > 1 && (model.traffic?.weight ?? 0) > 0) throw weightError(model)
    this.#delete(versions, model)
    return model
  }

  /** Removes exactly this model, even a default version; another version then becomes the default. */
  discard(model: Model): void {
    const versions = this.#models.get(model.name)
    if (versions?.byVersion.get(model.version) !== model) return
    this.#delete(versions, model)
    const [next] = versions.byVersion.keys()
    if (next !== undefined && versions.default === model.version) versions.default = next
  }

  /** The default version of every name, sorted by name. */
  defaults(): Model[] {
    const names = [...this.#models.keys()].sort()
    return names.map((name) => {
      const versions = this.#models.get(name)!
      return versions.byVersion.get(versions.default)!
    })
  }

  all(): Model[] {
    return [...this.#models.values()].flatMap((versions) => [...versions.byVersion.values()])
  }

  /** With the last version of a name go the name and its weights. */
  #delete(versions: Versions, model: Model): void {
    versions.byVersion.delete(model.version)
    if (versions.byVersion.size === 0) {
      this.#models.delete(model.name)
      return
    }
    const weight = versions.traffic?.forget(model.version) ?? 0
    setWeights(versions)
    if (weight > 0) this.#weightLost(model, weight)
  }

  /**
   * Functions of a workflow are a part of it: for everybody else there is no such model.
   * @throws ServeError MODEL_NOT_FOUND; MODEL_FAILED or MODEL_NOT_READY for one of the start
   */
  #versions(name: string): Versions {
    const versions = this.#models.get(name)
    const isInternal = versions?.byVersion.get(versions.default)?.workflowNode?.kind === 'functions'
    if (versions !== undefined && !isInternal) return versions
    throw this.#absent(name, undefined, modelNotFound(name))
  }

  #versionFor(versions: Versions, request: RoutedRequest, caller: Caller | undefined): Model {
    const { modelName, modelVersion } = request
    if (modelVersion === undefined && needsChoice(versions)) return chooseVersion(versions, request, caller)
    return this.#versionOf(versions, modelName, modelVersion)
  }

  /** @throws ServeError VERSION_NOT_FOUND */
  #versionOf({ byVersion, default: standard }: Versions, name: string, version?: string): Model {
    const model = byVersion.get(version ?? standard)
    if (model !== undefined) return model
    const message = `Model version: ${told(version!)} does not exist for model: ${name}`
    throw this.#absent(name, version, new ServeError('VERSION_NOT_FOUND', message))
  }

  /** Why a model is not here. `otherwise`: nobody was to load it. */
  #absent(name: string, version: string | undefined, otherwise: ServeError): ServeError {
    return this.failure(name, version) ?? (this.incomplete ? stillLoading() : otherwise)
  }
}

/** Called after every change of versions or weights. */
function setWeights(versions: Versions): void {
  for (const model of versions.byVersion.values()) model.traffic = versions.traffic?.of(model.version)
}

function nodeError({ name }: Model, { workflow }: NodeOrigin): ServeError {
  return new ServeError(
    'CONFLICT',
    `Model ${name} is a node of the workflow ${workflow}: unregister the workflow, with DELETE /workflows/${workflow}`,
  )
}

function weightError({ name, version, traffic }: Model): ServeError {
  return new ServeError(
    'CONFLICT',
    `Version ${version} of model ${name} has the weight ${traffic!.weight}: move its weight to other versions with PUT ` +
      `/models/${name}/traffic, or end the weights with DELETE, then unregister it`,
  )
}
