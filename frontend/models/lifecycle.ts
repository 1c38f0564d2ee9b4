import { rm } from 'node:fs/promises'
import { basename } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { nameProblem } from '../../common/names.ts'
import { downloadFailure } from '../../model-archiver/download.ts'
import { buildModel, type ManagerOptions, type Origin } from './build-model.ts'
import { Load, locateAndPrepare } from './located-model.ts'
import type { Model } from './model.ts'
import { startFailure } from './operation-rules.ts'
import type { RegisterRequest } from './operations.ts'
import type { Registry } from './registry.ts'

/**
 * Retired versions of one name that end at the same time. Each has workers: whoever may load models and keep
 * streams open could otherwise pile them up.
 */
const MAX_ENDING = 4
/** Seconds for the requests of a retired version, which nobody waits for. */
const RETIRED_S = 600
const SUPERSEDED = new ServeError(
  'NO_WORKER',
  'The model was reloaded several times before the request ended',
)

/** Life cycle of versions: build, start, replace, close; and the shutdown of all. */
export class Lifecycle {
  /** Archives that are being downloaded and unpacked. */
  readonly loads = new Set<Load>()
  readonly #options: ManagerOptions
  readonly #registry: Registry
  /** Downloaded archives in the store; removed with their models. */
  readonly #downloads = new Map<Model, string>()
  /** Replacements whose workers still start; the registry holds the old model until they have. */
  readonly #replacing = new Set<Model>()
  /** Models that still have requests or workers; the registry holds them no more. */
  readonly #ending = new Set<Model>()
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
   * Registers a version without workers. With `replaces`, an existing version of the same name and number
   * stays registered.
   * @throws ServeError like a register request; cleans up first
   */
  async create(request: RegisterRequest, origin: Origin, replaces = false): Promise<Model> {
    if (origin.workflowNode === undefined) checkName(request.modelName)
    if (!origin.atStartup) this.#registry.checkComplete()
    const load = new Load(request)
    this.loads.add(load)
    try {
      return await this.#load(request, origin, replaces, load)
    } finally {
      this.loads.delete(load)
    }
  }

  async #load(request: RegisterRequest, origin: Origin, replaces: boolean, load: Load): Promise<Model> {
    const { settings } = this.#options
    const signal = this.#stopping.signal
    const checked = origin.workflowNode?.kind === 'functions'
    const options = { settings, trusted: origin.trusted, checked, signal, load }
    const located = await locateAndPrepare(request, options).catch((thrown: unknown) => {
      const error = ServeError.from(thrown)
      const told = downloadFailure(error)
      if (told === undefined) throw thrown
      if (origin.trusted) throw new ServeError(error.code, told, { cause: thrown })
      // The client does not get the cause, which tells of the network.
      this.#options.warn(told)
      throw thrown
    })
    const { prepared, name, downloaded } = located
    try {
      const claim = (displaces: boolean): void => {
        this.checkOpen()
        origin.claim?.(name, prepared.version, displaces)
        const isFree = replaces || (origin.claim !== undefined && !displaces)
        if (!isFree) this.#registry.checkFree(name, prepared.version)
      }
      claim(false)
      await this.#options.installDependencies?.(located, signal)
      claim(true)
      const model = buildModel(request, located, origin, this.#options)
      if (!this.#registry.has(name, prepared.version)) this.#registry.put(model)
      origin.added?.(model)
      if (downloaded !== undefined) this.addDownload(model, downloaded)
      this.#options.inform?.(archiveLine(model))
      return model
    } catch (error) {
      await prepared.dispose()
      if (downloaded !== undefined) await rm(downloaded, { force: true })
      throw error
    }
  }

  /** Records that an archive in the store was downloaded for this model. */
  addDownload(model: Model, archive: string): void {
    this.#downloads.set(model, archive)
  }

  /** Versions whose workers start to take the place of those in the registry. */
  replacing(): Model[] {
    return [...this.#replacing]
  }

  /** Waits until the workers of a new model have loaded it. @throws ServeError, after removing the model */
  async started(model: Model, started: Promise<void>): Promise<void> {
    try {
      await started
    } catch (error) {
      await this.#discard(model)
      this.checkOpen() // during a shutdown, the shutdown ended the start and not the model
      throw startFailure(model, error)
    }
  }

  /** Ends a version that has not loaded, and what waits for it. */
  async #discard(model: Model): Promise<void> {
    this.#registry.discard(model)
    await this.dispose(model, 0, 'could not be loaded').catch(() => undefined)
  }

  /**
   * Builds a version and, once its workers have loaded it, swaps it for the one of the same name and number,
   * which it retires.
   * @param trusted whether the operator named the url; then it counts as loaded at start, also the next time
   * @param signal calls it off while the workers load
   * @throws ServeError like a register request, with the old one in its place
   */
  async replace(request: RegisterRequest, trusted: boolean, signal?: AbortSignal): Promise<Model> {
    const model = await this.create(request, { trusted, atStartup: trusted }, true)
    const workers = model.scales ? model.minWorkers : Math.max(1, model.minWorkers)
    const callOff = (): void => void model.callOff().catch(() => undefined)
    this.#replacing.add(model)
    signal?.addEventListener('abort', callOff)
    try {
      const started = model.scale(workers, Math.max(workers, model.maxWorkers))
      if (signal?.aborted === true) callOff()
      await this.started(model, started)
    } finally {
      signal?.removeEventListener('abort', callOff)
      this.#replacing.delete(model)
    }
    const old = this.#registry.put(model)
    if (old !== undefined) void this.retire(old, 'loaded again')
    return model
  }

  /**
   * Ends a version that was replaced or unloaded: its requests, those in its queue too, have RETIRED_S or a
   * longer unregister_model_timeout, and less when MAX_ENDING others of the same name have come since. Never
   * rejects: nobody waits.
   */
  async retire(model: Model, what: 'loaded again' | 'unloaded'): Promise<void> {
    const { settings, warn } = this.#options
    this.#ending.add(model)
    const others = [...this.#ending].filter(({ name }) => name === model.name)
    for (const oldest of others.slice(0, -MAX_ENDING)) void oldest.drain(0, SUPERSEDED)
    const reason = new ServeError('NO_WORKER', `Model "${model.name}" was ${what}`)
    try {
      await model.drain(Math.max(RETIRED_S, settings.unregisterModelTimeout) * 1000, reason)
      if (this.#draining) return // close() ends it with the others
      await this.dispose(model, settings.cancelGraceMs)
    } catch (error) {
      warn(`Model ${model.name}, version ${model.version}, was ${what}; ${notEnded(error, settings)}`)
    } finally {
      this.#ending.delete(model)
    }
  }

  /**
   * Ends a version that is no longer registered: its jobs, those that wait too, and then its workers have
   * `graceMs` milliseconds.
   * @throws ServeError CLEANUP_TIMEOUT
   */
  async dispose(model: Model, graceMs: number, what = 'was unregistered'): Promise<void> {
    const reason = new ServeError('NO_WORKER', `Model "${model.name}" ${what}`)
    const downloaded = this.#downloads.get(model)
    this.#downloads.delete(model)
    this.#ending.add(model)
    try {
      await model.close(reason, await model.settled(graceMs))
    } finally {
      this.#ending.delete(model)
      if (downloaded !== undefined) await rm(downloaded, { force: true })
    }
  }

  /** Aborts when the server ends. */
  get stopping(): AbortSignal {
    return this.#stopping.signal
  }

  /** Refuses new jobs and models, and cancels downloads and installations. */
  beginDrain(): void {
    this.#draining = true
    this.#stopping.abort()
  }

  /** Gives running jobs `graceMs` milliseconds, ends the rest, then stops all workers. */
  async close(graceMs: number, workerGraceMs: number): Promise<void> {
    this.beginDrain()
    const models = this.#all()
    const cut = await Promise.all(models.map((model) => model.drain(graceMs)))
    const requests = cut.reduce((sum, each) => sum + each.requests, 0)
    const streams = cut.reduce((sum, each) => sum + each.streams, 0)
    if (requests > 0)
      this.#options.warn(
        `drain_timeout has passed: ${requests} requests were disconnected, ${streams} of them streams`,
      )
    const reason = new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    await Promise.allSettled(models.map((model) => model.close(reason, workerGraceMs)))
  }

  /**
   * Kills all processes, synchronously: the server process is about to exit. Resolves as WorkerPool.kill
   * does.
   */
  async kill(): Promise<void> {
    this.beginDrain()
    await Promise.all(this.#all().map((model) => model.kill()))
  }

  /** Includes replacements that are not registered yet, and what was replaced and has not ended. */
  #all(): Model[] {
    return [...new Set([...this.#registry.all(), ...this.#replacing, ...this.#ending])]
  }
}

/** For the log, and for authors of handlers. */
function notEnded(error: unknown, { cancelGraceMs }: ManagerOptions['settings']): string {
  const { code, message } = ServeError.from(error)
  if (code !== 'CLEANUP_TIMEOUT') return `its old workers did not end: ${message}`
  return `its old workers did not end within ${cancelGraceMs} ms and were killed. Look for a shutdown, or other code, that does not end`
}

/** For the log: which file was registered. */
function archiveLine({ name, version, url, prepared: { archive }, pin }: Model): string {
  const what = `Model ${name}, version ${version}`
  if (archive === undefined) return `${what}: registered from the folder ${url}${otherName(name, url)}`
  return `${what}: registered from ${url}, SHA-256 ${archive.sha256}${pin === undefined ? '' : ' (pinned)'}`
}

/** The name in URLs is not the folder's when that has other characters than letters, digits and `_`. */
function otherName(name: string, url: string): string {
  return basename(url) === name ? '' : `; its name in URLs is ${name}`
}

/** Of a node the workflow has checked it. @throws ServeError INVALID_ARGUMENT */
function checkName(modelName: string | undefined): void {
  const problem = modelName === undefined ? undefined : nameProblem('Model name', modelName)
  if (problem !== undefined) throw new ServeError('INVALID_ARGUMENT', problem)
}
