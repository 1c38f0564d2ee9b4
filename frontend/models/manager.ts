import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { locateModel } from '../../model-archiver/locate.ts'
import { prepareModel, type PreparedModel } from '../../model-archiver/prepare.ts'
import { ServeError } from '../../protocol/errors.ts'
import type { Settings } from '../config/settings.ts'
import type { Metrics } from '../metrics/metrics.ts'
import { customizedMetadata } from './collect.ts'
import { describeModel } from './describe.ts'
import type { Job } from './job.ts'
import { Model, type WorkflowNodeKind } from './model.ts'
import { resolveModelSettings } from './model-settings.ts'
import type { NodeModels } from './node-models.ts'
import type {
  ModelDescription,
  ModelList,
  ModelOperations,
  OperationResult,
  RegisterRequest,
  ScaleRequest,
} from './operations.ts'
import { pageOf } from './page.ts'
import { Registry } from './registry.ts'
import { sequenceHeadersOf } from './sequence-headers.ts'
import type { WorkerPoolFactory } from './worker-pool.ts'

export interface ManagerOptions {
  settings: Settings
  metrics: Metrics
  createPool: WorkerPoolFactory
  /** One line about something that went on although it was not right. */
  warn: (message: string) => void
}

interface Located {
  prepared: PreparedModel
  name: string
  /** The file that was downloaded into the store, to be removed with the model. */
  downloaded?: string
}

/** Who wants a model. */
interface Origin {
  /** The server or its operator chose the location, not a client. */
  trusted: boolean
  atStartup: boolean
  workflowNode?: WorkflowNodeKind
}

/** All that can be done to models and with them, whatever protocol asked. */
export class ModelManager implements ModelOperations, NodeModels {
  readonly #options: ManagerOptions
  readonly #registry = new Registry()
  readonly #downloads = new Map<Model, string>()
  #draining = false

  constructor(options: ManagerOptions) {
    this.#options = options
  }

  submit(job: Job): void {
    this.#checkOpen()
    const { modelName, modelVersion } = job.request
    this.#registry.get(modelName, modelVersion).submit(job)
  }

  async register(request: RegisterRequest): Promise<OperationResult> {
    const model = await this.#create(request, { trusted: false, atStartup: false })
    const { name, version, minWorkers: count } = model
    if (count === 0) {
      return done(
        `Model "${name}" Version: ${version} registered with 0 initial workers. Use scale workers API to add workers for the model.`,
      )
    }
    const started = model.scale(count, model.maxWorkers)
    if (!request.synchronous) {
      started.catch((error: unknown) => {
        this.#options.warn(`Failed to start workers for model ${name} version: ${version}: ${String(error)}`)
      })
      return { state: 'accepted', message: 'Processing worker updates...' }
    }
    await this.#started(model, started)
    return done(`Model "${name}" Version: ${version} registered with ${count} initial workers`)
  }

  async addNode(request: RegisterRequest, kind: WorkflowNodeKind): Promise<Model> {
    const trusted = kind === 'functions'
    const model = await this.#create(request, { trusted, atStartup: false, workflowNode: kind })
    await this.#started(model, model.scale(model.minWorkers, model.maxWorkers))
    return model
  }

  async removeNode(model: Model, graceMs: number): Promise<void> {
    this.#registry.discard(model)
    await this.#dispose(model, graceMs)
  }

  /** Loads a model at start; its workers come up by themselves. */
  async loadAtStartup(location: string, name?: string): Promise<void> {
    const model = await this.#create(
      { url: location, modelName: name, synchronous: false },
      { trusted: true, atStartup: true },
    )
    model.scale(model.minWorkers, model.maxWorkers).catch((error: unknown) => {
      this.#options.warn(
        `Failed to start workers for model ${model.name} version: ${model.version}: ${String(error)}`,
      )
    })
  }

  async scale(request: ScaleRequest): Promise<OperationResult> {
    this.#checkOpen()
    const { modelName, modelVersion, synchronous } = request
    const model = this.#registry.get(modelName, modelVersion)
    const min = request.minWorker ?? 1
    const max = request.maxWorker ?? min
    if (min < 0) throw new ServeError('INTERNAL', 'min_worker cannot be negative.')
    if (max < min) throw new ServeError('INVALID_ARGUMENT', 'max_worker cannot be less than min_worker.')
    const scaled = model.scale(min, max)
    if (!synchronous) {
      scaled.catch((error: unknown) => {
        this.#options.warn(`Scaling model ${modelName} failed: ${String(error)}`)
      })
      return { state: 'accepted', message: 'Processing worker updates...' }
    }
    try {
      await scaled
    } catch (error) {
      throw startFailure(model, error)
    }
    const suffix = modelVersion === undefined ? '' : `, version: ${modelVersion}`
    return done(`Workers scaled to ${min} for model: ${modelName}${suffix}`)
  }

  setDefault(modelName: string, modelVersion: string): OperationResult {
    this.#registry.setDefault(modelName, modelVersion)
    return done(`Default version successfully updated for model "${modelName}" to "${modelVersion}"`)
  }

  async unregister(modelName: string, modelVersion?: string): Promise<OperationResult> {
    const model = this.#registry.remove(modelName, modelVersion)
    await this.#dispose(model, this.#options.settings.unregisterModelTimeout * 1000)
    return done(`Model "${modelName}" unregistered`)
  }

  list(limit = 100, nextPageToken = 0): ModelList {
    const listed = this.#registry.defaults().filter((model) => model.workflowNode !== 'functions')
    const { items, ...token } = pageOf(listed, limit, nextPageToken)
    return { ...token, models: items.map(({ name, url }) => ({ modelName: name, modelUrl: url })) }
  }

  async describe(modelName: string, modelVersion?: string, customized = false): Promise<ModelDescription[]> {
    const models =
      modelVersion === 'all'
        ? this.#registry.versions(modelName)
        : [this.#registry.get(modelName, modelVersion)]
    return Promise.all(
      models.map(async (model) =>
        customized
          ? { ...describeModel(model), customizedMetadata: await customizedMetadata(model) }
          : describeModel(model),
      ),
    )
  }

  health(): 'Healthy' | 'Unhealthy' {
    const short = this.#registry.defaults().some((model) => model.workers.healthy < model.minWorkers)
    return short ? 'Unhealthy' : 'Healthy'
  }

  loadedAtStartup(): string[] {
    return this.#registry
      .defaults()
      .filter((model) => model.loadedAtStartup)
      .map((model) => model.name)
  }

  /** Refuses new jobs from now on. */
  beginDrain(): void {
    this.#draining = true
  }

  /** Lets running jobs finish for `graceMs`, ends the rest, stops every worker. */
  async close(graceMs: number, workerGraceMs: number): Promise<void> {
    this.#draining = true
    const models = this.#registry.all()
    await Promise.all(models.map((model) => model.drain(graceMs)))
    const reason = new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    await Promise.allSettled(models.map((model) => model.close(reason, workerGraceMs)))
  }

  /** Ends everything at once: the process is about to exit. */
  kill(): void {
    for (const model of this.#registry.all()) model.kill()
  }

  async #create(request: RegisterRequest, origin: Origin): Promise<Model> {
    const located = await this.#locate(request, origin.trusted)
    const { prepared, name } = located
    try {
      this.#checkOpen()
      this.#registry.checkFree(name, prepared.version)
      const model = this.#build(request, located, origin)
      this.#registry.add(model)
      if (located.downloaded !== undefined) this.#downloads.set(model, located.downloaded)
      return model
    } catch (error) {
      await prepared.dispose()
      if (located.downloaded !== undefined) await rm(located.downloaded, { force: true })
      throw error
    }
  }

  /** Waits until the workers of a new model are loaded. @throws ServeError, after it is gone again */
  async #started(model: Model, started: Promise<void>): Promise<void> {
    try {
      await started
    } catch (error) {
      this.#registry.discard(model)
      await this.#dispose(model, 0).catch(() => undefined)
      throw startFailure(model, error)
    }
  }

  /** @throws ServeError SHUTTING_DOWN */
  #checkOpen(): void {
    if (this.#draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
  }

  #build(request: RegisterRequest, { prepared, name }: Located, { atStartup, workflowNode }: Origin): Model {
    const { settings, metrics, createPool, warn } = this.#options
    if (prepared.runtime !== 'node') {
      throw new ServeError('INVALID_MODEL', `Model ${name}: runtime ${prepared.runtime} is not supported yet`)
    }
    const configured = settings.models[name]?.[prepared.version] ?? {}
    const resolved = resolveModelSettings(request, prepared.modelConfig, configured, settings)
    for (const warning of resolved.warnings) warn(`model-config of ${name}: ${warning}`)
    if (resolved.settings.minWorkers === 0) {
      const count = defaultWorkers(settings, request, atStartup)
      Object.assign(resolved.settings, { minWorkers: count, maxWorkers: count })
    }
    return new Model(
      {
        name,
        url: request.url,
        prepared,
        settings: resolved.settings,
        metrics: metrics.model(name, prepared.version),
        loadedAtStartup: atStartup,
        workflowNode,
        maxRequestBytes: settings.maxRequestSize,
        sequenceHeaders: sequenceHeadersOf(settings),
      },
      createPool,
    )
  }

  async #locate(request: RegisterRequest, trusted: boolean): Promise<Located> {
    const { modelStore, allowedUrls, tempDir, defaultServiceHandler } = this.#options.settings
    const { path, downloaded } = await locateModel(request.url, { modelStore, allowedUrls, trusted })
    try {
      const prepared = await prepareModel(path, {
        tempDir,
        defaultName: request.modelName,
        handlerOverride: request.handler ?? undefined,
        defaultHandler: defaultServiceHandler,
        runtimeOverride: request.runtime,
      })
      return { prepared, name: request.modelName ?? prepared.name, downloaded: downloaded ? path : undefined }
    } catch (error) {
      if (downloaded) await rm(path, { force: true })
      throw error
    }
  }

  async #dispose(model: Model, graceMs: number): Promise<void> {
    const reason = new ServeError('NO_WORKER', `Model "${model.name}" was unregistered`)
    const downloaded = this.#downloads.get(model)
    this.#downloads.delete(model)
    try {
      await model.close(reason, graceMs)
    } finally {
      if (downloaded !== undefined) await rm(downloaded, { force: true })
    }
  }
}

/** Without any other word: at start as many as CPUs (or default_workers_per_model), at register none (or that key). */
function defaultWorkers(settings: Settings, request: RegisterRequest, atStartup: boolean): number {
  if (request.initialWorkers !== undefined) return request.initialWorkers
  if (settings.defaultWorkersPerModel > 0) return settings.defaultWorkersPerModel
  return atStartup ? availableParallelism() : 0
}

function startFailure(model: Model, error: unknown): ServeError {
  const cause = ServeError.from(error)
  const message = `Failed to start workers for model ${model.name} version: ${model.version}. ${cause.message}`
  return new ServeError(cause.code === 'OUT_OF_MEMORY' ? 'OUT_OF_MEMORY' : 'WORKER_START_FAILED', message, {
    cause: error,
    detail: cause.detail,
  })
}

function done(message: string): OperationResult {
  return { state: 'done', message }
}
