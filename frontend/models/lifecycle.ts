import { rm } from 'node:fs/promises'
import { ServeError } from '../../common/errors.ts'
import { nameProblem } from '../../common/names.ts'
import { buildModel, type ManagerOptions, type Origin } from './build-model.ts'
import { locateAndPrepare } from './located-model.ts'
import type { Model } from './model.ts'
import { startFailure } from './operation-rules.ts'
import type { RegisterRequest } from './operations.ts'
import type { Registry } from './registry.ts'

/** How versions come and go: made of their files, started, put in the place of others, closed; and their end with the server. */
export class Lifecycle {
  readonly #options: ManagerOptions
  readonly #registry: Registry
  /** Archives that came into the store with their models, and go with them. */
  readonly #downloads = new Map<Model, string>()
  /** Their workers start; until they have, another model has their name and version. */
  readonly #replacing = new Set<Model>()
  readonly #stopping = new AbortController()
  #draining = false

  constructor(options: ManagerOptions, registry: Registry) {
    this.#options = options
    this.#registry = registry
  }

  /** @throws ServeError SHUTTING_DOWN */
  checkOpen(): void {
    if (this.#draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
  }

  /**
   * Registers a version, which has no workers yet. With `replaces` one of the same name and number stays registered in its place.
   * @throws ServeError like a register request; nothing is left behind then
   */
  async create(request: RegisterRequest, origin: Origin, replaces = false): Promise<Model> {
    if (origin.workflowNode === undefined) checkName(request.modelName)
    const { settings } = this.#options
    const signal = this.#stopping.signal
    const located = await locateAndPrepare(request, { settings, trusted: origin.trusted, signal })
    const { prepared, name, downloaded } = located
    try {
      this.checkOpen()
      const known = this.#registry.has(name, prepared.version)
      if (!replaces) this.#registry.checkFree(name, prepared.version)
      await this.#options.installDependencies?.(located, signal)
      this.checkOpen()
      const model = buildModel(request, located, origin, this.#options)
      if (!known) this.#registry.add(model)
      if (downloaded !== undefined) this.addDownload(model, downloaded)
      return model
    } catch (error) {
      await prepared.dispose()
      if (downloaded !== undefined) await rm(downloaded, { force: true })
      throw error
    }
  }

  /** That an archive in the store was downloaded for this model. */
  addDownload(model: Model, archive: string): void {
    this.#downloads.set(model, archive)
  }

  /** Waits until the workers of a new model are loaded. @throws ServeError, after it is gone again */
  async started(model: Model, started: Promise<void>): Promise<void> {
    try {
      await started
    } catch (error) {
      this.#registry.discard(model)
      await this.dispose(model, 0).catch(() => undefined)
      this.checkOpen() // what ended the start is the shutdown then, not the model
      throw startFailure(model, error)
    }
  }

  /** Makes a version, and puts it in the place of the one with its name and number as soon as its workers are loaded. */
  async replace(request: RegisterRequest, trusted: boolean, graceMs: number): Promise<Model> {
    const model = await this.create(request, { trusted, atStartup: false }, true)
    const workers = Math.max(1, model.minWorkers)
    this.#replacing.add(model)
    try {
      await this.started(model, model.scale(workers, Math.max(workers, model.maxWorkers)))
    } finally {
      this.#replacing.delete(model)
    }
    const old = this.#registry.put(model)
    if (old !== undefined) await this.dispose(old, graceMs)
    return model
  }

  /** Ends a version that is registered no more; its running jobs get `graceMs`. @throws ServeError CLEANUP_TIMEOUT */
  async dispose(model: Model, graceMs: number): Promise<void> {
    const reason = new ServeError('NO_WORKER', `Model "${model.name}" was unregistered`)
    const downloaded = this.#downloads.get(model)
    this.#downloads.delete(model)
    try {
      await model.close(reason, graceMs)
    } finally {
      if (downloaded !== undefined) await rm(downloaded, { force: true })
    }
  }

  /** Calls off what is being downloaded and installed, and lets no model come any more. */
  callOff(): void {
    this.#draining = true
    this.#stopping.abort()
  }

  /** Refuses new jobs from now on. */
  beginDrain(): void {
    this.#draining = true
  }

  /** Lets running jobs finish for `graceMs`, ends the rest, stops every worker. */
  async close(graceMs: number, workerGraceMs: number): Promise<void> {
    this.callOff()
    const models = this.#all()
    await Promise.all(models.map((model) => model.drain(graceMs)))
    const reason = new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    await Promise.allSettled(models.map((model) => model.close(reason, workerGraceMs)))
  }

  /** Ends everything at once: the process is about to exit. */
  kill(): void {
    this.#stopping.abort()
    for (const model of this.#all()) model.kill()
  }

  /** With those that wait to take another's place. */
  #all(): Model[] {
    return [...new Set([...this.#registry.all(), ...this.#replacing])]
  }
}

/** Of a node the workflow has checked it. @throws ServeError INVALID_ARGUMENT */
function checkName(modelName: string | undefined): void {
  const problem = modelName === undefined ? undefined : nameProblem('Model name', modelName)
  if (problem !== undefined) throw new ServeError('INVALID_ARGUMENT', problem)
}
