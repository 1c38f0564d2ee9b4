import { redactUrl } from '../../common/texts.ts'
import type { ListedMethod } from '../../common/handler-methods.ts'
import { unlessEmpty } from '../../common/json.ts'
import { isName } from '../../common/names.ts'
import type { SnapshotContent } from '../config/model-snapshot.ts'
import type { FailedOverview, LoadingModel, ModelOverview } from '../../common/server-events.ts'
import type { ManagerOptions } from './build-model.ts'
import { describeModels, isStarting, overviewOf, startingOverview, statusOf } from './describe.ts'
import { workersThatFit } from './device-settings.ts'
import type { Job } from '../jobs/job.ts'
import { Lifecycle } from './lifecycle.ts'
import type { Model, NodeOrigin } from './model.ts'
import type {
  Caller,
  ModelDescription,
  ModelList,
  ModelOperations,
  ModelStatus,
  OperationResult,
  RegisterRequest,
  Routed,
  RoutedRequest,
  ScaleRequest,
} from './operations.ts'
import { checkWorkers, done, pageOf, startFailure, workerBounds } from './operation-rules.ts'
import { Registry } from './registry.ts'
import { type FailedModel, Repository, type RepositoryHost } from './repository.ts'
import { snapshotModels } from './snapshot-models.ts'
import { staleFiles } from './source-files.ts'
import { StartupModels } from './startup-models.ts'
import { TrafficControl } from './traffic-control.ts'

/** All operations on models, for every protocol. */
export class ModelManager implements ModelOperations, RepositoryHost {
  readonly repository: Repository
  readonly traffic: TrafficControl
  /** The models that the configuration names. */
  readonly startup: StartupModels
  readonly #options: ManagerOptions
  readonly #registry = new Registry((model, weight) => this.traffic.weightLost(model, weight))
  readonly #lifecycle: Lifecycle

  constructor(options: ManagerOptions) {
    this.#options = options
    this.#lifecycle = new Lifecycle(options, this.#registry)
    this.traffic = new TrafficControl(this.#registry, options)
    this.startup = new StartupModels(this.#lifecycle, this.#registry, this.traffic, options)
    this.repository = new Repository(this, options.settings)
  }

  submit(job: Job, caller?: Caller): void {
    this.#lifecycle.checkOpen()
    this.#registry.submit(job, caller)
  }

  route(request: RoutedRequest, caller?: Caller): Routed {
    return this.#registry.route(request, caller)
  }

  async register(request: RegisterRequest): Promise<OperationResult> {
    const model = await this.#lifecycle.create(request, { trusted: false, atStartup: false })
    const { name, version, minWorkers: count } = model
    this.startup.unloaded.forget(name, version)
    if (count === 0 && (!model.scales || model.maxWorkers === 0)) {
      await this.#changed()
      return done(
        `Model "${name}" Version: ${version} registered with 0 initial workers. Use scale workers API to add workers for the model.`,
      )
    }
    const started = model.scale(count, model.maxWorkers)
    if (!request.synchronous) {
      started.catch((error: unknown) => {
        this.#options.warn(`Failed to start workers for model ${name} version: ${version}: ${String(error)}`)
      })
      await this.#changed()
      return { state: 'accepted', message: 'Processing worker updates...' }
    }
    await this.#lifecycle.started(model, started)
    await this.#changed()
    return done(`Model "${name}" Version: ${version} registered with ${Math.max(1, count)} initial workers`)
  }

  /**
   * Registers a node of a workflow and waits until its workers have loaded it. The location of `functions` is
   * trusted; that of a `model` obeys the rules for clients.
   * @throws ServeError like a register request; cleans up first
   */
  async addNode(request: RegisterRequest, node: NodeOrigin): Promise<Model> {
    const trusted = node.kind === 'functions'
    const model = await this.#lifecycle.create(request, { trusted, atStartup: false, workflowNode: node })
    await this.#lifecycle.started(model, model.scale(model.minWorkers, model.maxWorkers))
    return model
  }

  /**
   * Unregisters exactly this model; its running jobs get `graceMs` milliseconds.
   * @throws ServeError CLEANUP_TIMEOUT
   */
  async removeNode(model: Model, graceMs: number): Promise<void> {
    this.#registry.discard(model)
    await this.#lifecycle.dispose(model, graceMs)
  }

  async replace(request: RegisterRequest, trusted: boolean, signal?: AbortSignal): Promise<Model> {
    const model = await this.#lifecycle.replace(request, trusted, signal)
    this.startup.unloaded.forget(model.name, model.version)
    await this.#changed()
    return model
  }

  async whenLoaded(model: Model): Promise<void> {
    if (model.workers.ready > 0 || model.wakes) return
    try {
      await model.scale(model.minWorkers, model.maxWorkers)
    } catch (error) {
      throw startFailure(model, error)
    }
  }

  async retire(model: Model): Promise<void> {
    this.#registry.discard(model)
    void this.#lifecycle.retire(model, 'unloaded')
    await this.#changed()
  }

  failed(): FailedModel[] {
    return this.startup.unloaded.failed().map(({ name, version, failure, request: { url } }) => ({
      name: name!,
      version: version ?? '',
      url: redactUrl(url),
      failure,
    }))
  }

  async forget(modelName: string, modelVersion?: string): Promise<boolean> {
    const found = this.startup.unloaded.forget(modelName, modelVersion)
    if (found) await this.#changed()
    return found
  }

  registered(): Model[] {
    return this.#registry.all()
  }

  /** What a snapshot needs to restore the models; undefined while models of the start are still to come. */
  snapshot(): SnapshotContent | undefined {
    if (this.#registry.incomplete) return undefined
    const models = this.startup.unloaded.addTo(snapshotModels(this.#registry))
    const unloaded = this.startup.unloaded.configured()
    return {
      models,
      traffic: unlessEmpty(this.traffic.snapshot()),
      ...(unloaded.length > 0 && { unloaded }),
    }
  }

  async scale(request: ScaleRequest): Promise<OperationResult> {
    this.#lifecycle.checkOpen()
    const { modelName, modelVersion, synchronous } = request
    const model = this.#registry.get(modelName, modelVersion)
    const { min, max } = workerBounds(request)
    const { parallelLevel } = model.settings
    checkWorkers({ minWorkers: min, maxWorkers: max, parallelLevel })
    const fit = workersThatFit(model.settings, this.#options.gpuCount ?? 0, model.name)
    const scaled = model.scale(Math.min(min, fit), Math.min(max, fit))
    scaled.catch(() => undefined) // handled below, after the snapshot
    await this.#changed()
    const warnings = await staleFiles(model)
    if (!synchronous) {
      scaled.catch((error: unknown) => {
        this.#options.warn(`Scaling model ${modelName} failed: ${String(error)}`)
      })
      return { state: 'accepted', message: 'Processing worker updates...', warnings }
    }
    try {
      await scaled
    } catch (error) {
      throw startFailure(model, error)
    }
    const suffix = modelVersion === undefined ? '' : `, version: ${modelVersion}`
    const number = model.scales && max > min ? `between ${min} and ${max}` : `to ${min}`
    return { ...done(`Workers scaled ${number} for model: ${modelName}${suffix}`), warnings }
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    this.#registry.setDefault(modelName, modelVersion)
    this.startup.defaultChanged(modelName)
    void this.#changed()
    return done(`Default version successfully updated for model "${modelName}" to "${modelVersion}"`)
  }

  async unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    if (!this.#registry.has(modelName, modelVersion) && (await this.forget(modelName, modelVersion)))
      return done(`Model "${modelName}" unregistered`)
    const model = this.#registry.remove(modelName, modelVersion)
    this.startup.unloaded.forget(modelName, model.version)
    await this.#changed()
    await this.#lifecycle.dispose(model, this.#unregisterMs)
    return done(`Model "${modelName}" unregistered`)
  }

  list(limit = 100, nextPageToken = 0, sees: (name: string) => boolean = () => true): ModelList {
    const loaded = this.#registry.defaults().filter((model) => model.workflowNode?.kind !== 'functions')
    const unloaded = this.failed().filter(({ name }) => isName(name))
    const failed = new Map(unloaded.map((model) => [model.name, model]))
    for (const { name } of loaded) failed.delete(name)
    const listed = [...loaded, ...failed.values()].filter(({ name }) => sees(name))
    const { items, ...token } = pageOf(listed, limit, nextPageToken)
    return { ...token, models: items.map(({ name, url }) => ({ modelName: name, modelUrl: url })) }
  }

  async describe(modelName: string, modelVersion?: string, customized = false): Promise<ModelDescription[]> {
    const models =
      modelVersion === 'all'
        ? this.#registry.versions(modelName)
        : [this.#registry.get(modelName, modelVersion)]
    return describeModels(models, customized, this.#options.gpuUsage)
  }

  /** Every version, and the methods of its handler. */
  async describeAll(): Promise<(ModelDescription & { methods?: readonly ListedMethod[] })[]> {
    const models = this.registered()
    const described = await describeModels(models, false, this.#options.gpuUsage)
    return described.map((each, at) => ({ ...each, methods: models[at]!.methods }))
  }

  /** What every version does now, for those who watch, sorted by name and version. */
  overviews(): ModelOverview[] {
    const defaults = new Set(this.#registry.defaults())
    return this.registered()
      .filter((model) => model.workflowNode?.kind !== 'functions')
      .map((model) => overviewOf(model, defaults.has(model)))
      .sort((a, b) => compare(a.modelName, b.modelName) || compare(a.modelVersion, b.modelVersion))
  }

  /** The models of the start that could not be loaded, for those who watch. */
  failedOverviews(): FailedOverview[] {
    return this.failed().map(({ name, version, url, failure: { id, at, reason } }) => ({
      modelName: name,
      ...(version !== '' && { modelVersion: version }),
      url,
      failure: { id, at: at.toISOString(), reason },
    }))
  }

  /** Archives that are on their way to a model, and new versions whose workers load. */
  loading(): LoadingModel[] {
    // The first version of a name is in its place while its workers start.
    const versions = new Set([...this.registered(), ...this.#lifecycle.replacing()])
    const starting = [...versions].filter(isStarting)
    return [...[...this.#lifecycle.loads].map((load) => load.describe()), ...starting.map(startingOverview)]
  }

  health(): 'Healthy' | 'Unhealthy' {
    // The models that are still to come have no worker yet.
    if (this.#registry.incomplete) return 'Unhealthy'
    const short = this.#registry.defaults().some(({ workers, minWorkers }) => {
      // A model that scales from 0 and cannot be loaded keeps the worker that failed.
      return workers.healthy < Math.max(minWorkers, workers.failure === undefined ? 0 : 1)
    })
    return short ? 'Unhealthy' : 'Healthy'
  }

  status(modelName: string, modelVersion?: string): ModelStatus {
    return statusOf(this.#registry.get(modelName, modelVersion))
  }

  statuses(): ModelStatus[] {
    return this.#registry
      .defaults()
      .filter((model) => model.workflowNode?.kind !== 'functions')
      .map(statusOf)
  }

  loadedAtStartup(): string[] {
    this.#registry.checkComplete()
    return this.#registry
      .defaults()
      .filter((model) => model.loadedAtStartup)
      .map((model) => model.name)
  }

  unloadedAtStartup(): string[] {
    const loading = this.#registry.all().filter(({ loadedAtStartup, methods, workers }) => {
      return loadedAtStartup && methods === undefined && workers.wanted > 0 && workers.ready === 0
    })
    return [...this.failed(), ...loading].map(({ name }) => name)
  }

  /** Refuses new jobs and models, and cancels downloads and installations. */
  beginDrain(): void {
    this.#lifecycle.beginDrain()
  }

  /** Gives running jobs `graceMs` milliseconds, ends the rest, then stops all workers. */
  close(graceMs: number, workerGraceMs: number): Promise<void> {
    return this.#lifecycle.close(graceMs, workerGraceMs)
  }

  /**
   * Kills all processes, synchronously: the server process is about to exit. Resolves as WorkerPool.kill
   * does.
   */
  kill(): Promise<void> {
    return this.#lifecycle.kill()
  }

  get #unregisterMs(): number {
    return this.#options.settings.unregisterModelTimeout * 1000
  }

  #changed(): Promise<void> {
    return this.#options.onChange?.() ?? Promise.resolve()
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}
