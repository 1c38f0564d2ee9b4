import { within } from '../../common/deadline.ts'
import { ServeError } from '../../common/errors.ts'
import { processors } from '../../common/processors.ts'
import { startTimer } from '../../common/timer.ts'
import { Turns } from '../../model-archiver/turns.ts'
import type { ModelToLoad } from '../config/settings.ts'
import type { ModelSnapshot } from '../config/model-snapshot.ts'
import { AbsentVersions } from './absent-versions.ts'
import type { ManagerOptions, Origin } from './build-model.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Model } from './model.ts'
import type { RegisterRequest } from './operations.ts'
import type { Registry } from './registry.ts'
import { type Restorable, restorable, restoreRequest } from './snapshot-models.ts'

/** Models that are unpacked and started at the same time. */
const MAX_STARTS = Math.max(4, 2 * processors())
/** Milliseconds after which the next model starts, although the workers of one before it still load. */
const TURN_MS = 10_000
/** Milliseconds before a version of the snapshot is tried again: twice as many each time. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 300_000

/** The models of the start: of the command line and the configuration, or of a snapshot. */
export class StartupModels {
  readonly absent = new AbsentVersions()
  readonly #lifecycle: Lifecycle
  readonly #registry: Registry
  readonly #options: ManagerOptions
  readonly #turns = new Turns(MAX_STARTS)
  /** The order in which models were wanted: the first version of a name is its default. */
  readonly #places = new Map<Model, number>()
  #wanted = 0
  /** While or after their workers load them. */
  readonly #starts: Promise<void>[] = []

  constructor(lifecycle: Lifecycle, registry: Registry, options: ManagerOptions) {
    this.#lifecycle = lifecycle
    this.#registry = registry
    this.#options = options
  }

  /** Loads a model, without waiting for its workers. */
  async load({ location, name, sha256 }: ModelToLoad): Promise<void> {
    const request = { url: location, modelName: name, sha256, synchronous: false }
    await this.#begin(request, { trusted: true, atStartup: true })
  }

  /**
   * Loads the models of a snapshot. A version whose archive cannot be used is logged and skipped, as in
   * TorchServe, and tried again until it is loaded or unregistered.
   * @param hint ends each message about a version that is not loaded: where the snapshot is
   * @throws ServeError MODEL_NOT_FOUND when an archive is missing; nothing is loaded then.
   *   UNTRUSTED_ARCHIVE when one has not its pin
   */
  async restore(snapshot: ModelSnapshot, hint: string): Promise<void> {
    const { modelStore } = this.#options.settings
    const versions = await restorable(snapshot, modelStore, hint)
    for (const version of versions) this.absent.add(version)
    await Promise.all(versions.map((version) => this.#restoreOrSkip(version, hint)))
  }

  async #restoreOrSkip(version: Restorable, hint: string): Promise<void> {
    try {
      await this.#restore(version)
    } catch (error) {
      const { code, message } = ServeError.from(error)
      if (code === 'UNTRUSTED_ARCHIVE') throw untrustedVersion(version, `${message}${hint}`)
      if (this.#lifecycle.stopping.aborted) throw error
      this.#options.warn(`Error while registering model ${version.name}. Details: ${message}${hint}`)
      this.#add(Promise.reject(notLoaded(version, error)))
      this.#tryLater(version, message, FIRST_PAUSE_MS)
    }
  }

  /** The disk may have room again, or the archive be mended. @param told why it was not loaded before */
  #tryLater(version: Restorable, told: string, pauseMs: number): void {
    const { stopping } = this.#lifecycle
    const again = async (): Promise<void> => {
      if (stopping.aborted || !this.absent.has(version)) return
      try {
        await this.#restore(version)
        await this.#options.onChange?.()
      } catch (error) {
        const { code, message } = ServeError.from(error)
        if (code === 'CONFLICT')
          this.absent.loaded(version) // it was registered meanwhile
        else if (message !== told && !stopping.aborted)
          this.#options.warn(`Error while registering model ${version.name}. Details: ${message}`)
        this.#tryLater(version, message, Math.min(2 * pauseMs, LONGEST_PAUSE_MS))
      }
    }
    startTimer(() => void again(), pauseMs).unref()
  }

  /**
   * Resolves when every model is loaded on its workers.
   * @throws ServeError with the cause of the first that is not
   */
  async loaded(): Promise<void> {
    await Promise.all(this.#starts)
  }

  /** Its failure is told already, and counts only for those who wait for it. */
  #add(started: Promise<void>): void {
    started.catch(() => undefined)
    this.#starts.push(started)
  }

  async #restore(version: Restorable): Promise<void> {
    const url = version.state.modelUrl ?? version.state.marName
    const model = await this.#begin(restoreRequest(version), {
      trusted: true,
      atStartup: true,
      restored: true,
      url,
    })
    this.absent.loaded(version)
    if (/^https?:/i.test(url)) this.#lifecycle.addDownload(model, version.path)
    warnOfChange(model, version, this.#options.warn)
    if (model.version !== version.version) {
      this.#options.warn(
        `Model ${model.name}: the archive now contains version ${model.version}, not ${version.version}`,
      )
    }
  }

  /** Builds the model when it is its turn, and starts its workers. */
  async #begin(request: RegisterRequest, origin: Origin): Promise<Model> {
    const place = this.#wanted++
    await this.#turns.take(this.#lifecycle.stopping)
    let started: Promise<void> | undefined
    try {
      const model = await this.#lifecycle.create(request, origin)
      this.#keepDefault(model, place)
      started = this.#start(model)
      this.#add(started)
      return model
    } finally {
      void within(TURN_MS, started)
        .catch(() => undefined)
        .then(() => this.#turns.give())
    }
  }

  #keepDefault(model: Model, place: number): void {
    this.#places.set(model, place)
    const standard = this.#registry.get(model.name)
    if (place < (this.#places.get(standard) ?? -1)) this.#registry.setDefault(model.name, model.version)
  }

  async #start(model: Model): Promise<void> {
    try {
      await model.scale(model.minWorkers, model.maxWorkers)
    } catch (error) {
      const { message } = ServeError.from(error)
      // Workers that end with the server have not failed.
      if (!this.#lifecycle.stopping.aborted)
        this.#options.warn(
          `Failed to start workers for model ${model.name} version: ${model.version}: ${message}`,
        )
      throw notLoaded(model, error)
    }
  }
}

function untrustedVersion({ name, version }: Restorable, message: string): ServeError {
  return new ServeError('UNTRUSTED_ARCHIVE', `Model ${name}, version ${version}, of the snapshot: ${message}`)
}

function notLoaded({ name, version }: { name: string; version: string }, thrown: unknown): ServeError {
  const { code, message, detail } = ServeError.from(thrown)
  return new ServeError(code, `Model ${name}, version ${version}, did not load: ${message}`, {
    cause: thrown,
    detail,
  })
}

/** An archive without a pin may change between two starts, but not unnoticed. */
function warnOfChange(
  { name, version, prepared: { archive } }: Model,
  { state: { archiveSha256: before } }: Restorable,
  warn: (message: string) => void,
): void {
  if (before === undefined || archive === undefined || archive.sha256 === before) return
  warn(
    `Model ${name}, version ${version}: its archive has changed since the snapshot; its SHA-256 was ${before}`,
  )
}
