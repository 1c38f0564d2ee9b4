import { existsSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { startTimer, within } from '../../common/timer.ts'
import { type ErrorCode, ServeError } from '../../common/errors.ts'
import { processors } from '../../common/processors.ts'
import { redactUrl } from '../../common/texts.ts'
import { searchedStore } from '../../model-archiver/locate.ts'
import { defaultModelName } from '../../model-archiver/model-names.ts'
import { StoreIndex } from '../../model-archiver/repository.ts'
import { listStore } from '../../model-archiver/store.ts'
import { Turns } from '../../model-archiver/turns.ts'
import type { ModelToLoad } from '../config/settings.ts'
import type { ModelSnapshot } from '../config/model-snapshot.ts'
import { versionSettings } from '../config/version-settings.ts'
import type { ManagerOptions } from './build-model.ts'
import type { Lifecycle } from './lifecycle.ts'
import type { Model } from './model.ts'
import { newFailure } from './model-errors.ts'
import type { Registry } from './registry.ts'
import type { TrafficControl } from './traffic-control.ts'
import {
  archiveName,
  loadRequest,
  type Restorable,
  restorable,
  restoreRequest,
  type StartupModel,
  UnloadedModels,
} from './snapshot-models.ts'

/** Models that are unpacked and started at the same time. */
const MAX_STARTS = Math.max(4, 2 * processors())
/** Milliseconds after which the next model starts, although the workers of one before it still load. */
const TURN_MS = 10_000
/** Milliseconds before a model that has failed is tried again: twice as many each time. */
const FIRST_PAUSE_MS = 1_000
const LONGEST_PAUSE_MS = 300_000

/** Failures that end a start: the configuration names what is not there, or not what it trusts. */
const MISTAKES: ReadonlySet<ErrorCode> = new Set(['MODEL_NOT_FOUND', 'UNTRUSTED_ARCHIVE'])

/** Which failures end the start; `mistakes`: only if the location or the pin is wrong. */
export type StartEnd = 'always' | 'mistakes' | 'never'

/** How the models of a start are loaded; see StartOptions. */
interface LoadOptions {
  readonly waitForModels?: boolean
  readonly snapshotHint?: string
  readonly signal?: AbortSignal
}

/** The models of the start: of the command line and the configuration, or of a snapshot. */
export class StartupModels {
  readonly unloaded = new UnloadedModels()
  /** What was left out of the store, and why. */
  readonly warnings: string[] = []
  readonly #lifecycle: Lifecycle
  readonly #registry: Registry
  readonly #traffic: TrafficControl
  readonly #options: ManagerOptions
  readonly #turns = new Turns(MAX_STARTS)
  readonly #origins = new WeakMap<Model, StartupModel>()
  #wanted = 0
  /** While or after their workers load them. */
  readonly #starts: Promise<void>[] = []

  constructor(lifecycle: Lifecycle, registry: Registry, traffic: TrafficControl, options: ManagerOptions) {
    this.#lifecycle = lifecycle
    this.#registry = registry
    this.#traffic = traffic
    this.#options = options
    registry.failure = (name, version) => this.unloaded.failure(name, version)
  }

  /**
   * Loads what the configuration names: a snapshot, a list of models, or the whole store, a few at a time.
   * Does not wait for the workers. Until all are registered, requests for unknown models get MODEL_NOT_READY,
   * and the server is not healthy.
   * @throws ServeError of the first whose failure ends the start
   */
  async loadAll({ signal, snapshotHint, waitForModels }: LoadOptions): Promise<void> {
    const { loadModels, modelSnapshot } = this.#options.settings
    this.#registry.incomplete = true
    if (modelSnapshot !== undefined) await this.restore(modelSnapshot, snapshotHint)
    else {
      const ends = waitForModels === true ? 'always' : loadModels === 'all' ? 'never' : 'mistakes'
      const wanted = await this.#configured()
      signal?.throwIfAborted()
      await Promise.all(wanted.map((model) => this.load(model, ends)))
    }
    this.#registry.incomplete = false
  }

  async #configured(): Promise<readonly ModelToLoad[]> {
    const { loadModels, modelStore } = this.#options.settings
    if (loadModels !== 'all') return loadModels
    if (modelStore === undefined) return []
    const { models, skipped } = await listStore(modelStore)
    this.warnings.push(...skipped.map(({ reason }) => reason))
    if (models.length === 0)
      this.warnings.push(
        `No models in ${modelStore}: it must contain archives (.mar, .tar.gz), or folders with a handler, a manifest or a .gguf file`,
      )
    return models
  }

  /**
   * Loads a model, without waiting for its workers. One that cannot be loaded has failed, and is tried again
   * until it is loaded or unregistered.
   * @throws ServeError of a failure that ends the start
   */
  load(model: ModelToLoad, ends: StartEnd = 'mistakes'): Promise<void> {
    return this.#load(this.#addConfigured(model), ends)
  }

  /**
   * Loads the models of a snapshot, like those of the configuration, with their weights.
   * @param hint ends each message about a version that is not loaded: where the snapshot is
   * @throws ServeError MODEL_NOT_FOUND when an archive is missing; nothing is loaded then.
   *   UNTRUSTED_ARCHIVE when one has not its pin
   */
  async restore(snapshot: ModelSnapshot, hint = ''): Promise<void> {
    const { modelStore } = this.#options.settings
    const versions = await restorable(snapshot, modelStore, hint)
    const models = versions.map((restorable) => {
      const { name, version } = restorable
      const failedLine = `Error while registering model ${name}. Details: `
      return this.#add({ request: restoreRequest(restorable), failedLine, hint, restorable, name, version })
    })
    // A start has tried these already, and has gone on without them.
    const unloaded = (snapshot.unloaded ?? [])
      .filter((model) => !this.#isRemoved(model))
      .map((model) => this.#addConfigured(model, hint))
    await Promise.all([
      ...models.map((model) => this.#load(model, 'mistakes')),
      ...unloaded.map((model) => this.#load(model, 'never')),
    ])
    for (const [name, traffic] of Object.entries(snapshot.traffic ?? {})) this.#traffic.restore(name, traffic)
  }

  #addConfigured(model: ModelToLoad, hint = ''): StartupModel {
    const failedLine = `Failed to load model: ${redactUrl(model.location)}: `
    return this.#add({ request: loadRequest(model), failedLine, hint, name: model.name })
  }

  /** A file that was taken away is wanted no more, unless load_models names it. */
  #isRemoved({ location }: ModelToLoad): boolean {
    const { loadModels, modelStore = '' } = this.#options.settings
    if (/^\w+:\/\//.test(location) || existsSync(resolve(modelStore, location)) || existsSync(location))
      return false
    if (loadModels !== 'all' && loadModels.some((named) => named.location === location)) return false
    this.#options.warn(`${location} no longer exists, so the server stops trying to load it`)
    return true
  }

  async #load(wanted: StartupModel, ends: StartEnd): Promise<void> {
    try {
      await this.#begin(wanted)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      if (this.#lifecycle.stopping.aborted) throw error
      const isEnd = ends === 'always' || (ends === 'mistakes' && MISTAKES.has(error.code))
      if (isEnd) throw this.#told(wanted, error)
      await this.#failed(wanted, error)
    }
  }

  /**
   * Resolves when every model is loaded on its workers.
   * @throws ServeError with the cause of the first that is not
   */
  async loaded(): Promise<void> {
    await Promise.all(this.#starts)
  }

  /** The operator has chosen the default version of a name. */
  defaultChanged(name: string): void {
    this.unloaded.defaultChanged(name)
    this.#origins.delete(this.#registry.get(name))
  }

  #add(model: Pick<StartupModel, 'request' | 'failedLine'> & Partial<StartupModel>): StartupModel {
    const { name, version, restorable: entry } = model
    const place = this.#wanted++
    const restored = entry && { restored: true, url: entry.state.modelUrl ?? entry.state.marName }
    const own: StartupModel = {
      hint: '',
      ...model,
      ...{ place, name, version, restorable: entry, failure: undefined },
      origin: {
        ...{ trusted: true, atStartup: true, ...restored },
        claim: (found, number, displaces) => this.#claim(own, found, number, displaces),
        added: (built) => this.#keepDefault(built, own),
      },
    }
    this.unloaded.add(own)
    return own
  }

  /** Builds the model when it is its turn, and starts its workers. */
  async #begin(wanted: StartupModel): Promise<void> {
    await this.#turns.take(this.#lifecycle.stopping)
    let started: Promise<void> | undefined
    try {
      const model = await this.#lifecycle.create(wanted.request, wanted.origin)
      if (wanted.restorable !== undefined) this.#restored(model, wanted.restorable)
      started = this.#start(model)
      this.#wait(started)
    } finally {
      void within(TURN_MS, started)
        .catch(() => undefined)
        .then(() => this.#turns.give())
    }
  }

  #restored(model: Model, version: Restorable): void {
    const { state, path } = version
    if (/^https?:/i.test(state.modelUrl ?? state.marName)) this.#lifecycle.addDownload(model, path)
    warnOfChange(model, version, this.#options.warn)
    if (model.version !== version.version) {
      this.#options.warn(
        `Model ${model.name}: the archive now contains version ${model.version}, not ${version.version}`,
      )
    }
  }

  #keepDefault(model: Model, wanted: StartupModel): void {
    this.unloaded.loaded(wanted)
    this.#origins.set(model, wanted)
    const standard = this.#registry.get(model.name)
    if (this.#rankOf(model) < this.#rankOf(standard)) this.#registry.setDefault(model.name, model.version)
  }

  /** The least is the default: what clients registered or chose, then what the key `models` names. */
  #rankOf(model: Model): number {
    const wanted = this.#origins.get(model)
    if (wanted === undefined) return -Infinity
    const { settings } = this.#options
    const isNamed = versionSettings(settings, model.name, model.version).defaultVersion === true
    return isNamed && wanted.restorable === undefined ? wanted.place - this.#wanted : wanted.place
  }

  /**
   * Gives a name and version to the first archive of the list that has them, whichever was read first.
   * @param displaces whether a later one goes now
   * @throws ServeError CONFLICT
   */
  #claim(wanted: StartupModel, name: string, version: string, displaces: boolean): void {
    wanted.name = name
    wanted.version = version
    if (!this.#registry.has(name, version)) return
    const holder = this.#registry.get(name, version)
    const other = this.#origins.get(holder)
    if (other === undefined || other.place < wanted.place) throw twin(wanted, holder.url)
    if (!displaces) return
    this.#registry.discard(holder)
    void this.#lifecycle.retire(holder, 'unloaded')
    this.unloaded.add(other)
    void this.#failed(other, twin(other, wanted.request.url))
  }

  /**
   * Keeps the model as failed, and tries it again: the disk may have room then, or the archive be mended.
   * Twins need the operator.
   */
  async #failed(wanted: StartupModel, error: ServeError): Promise<void> {
    await this.#identify(wanted)
    this.#fail(wanted, error)
    this.#wait(Promise.reject(this.#told(wanted, error)))
    if (error.code !== 'CONFLICT') this.#tryLater(wanted, FIRST_PAUSE_MS)
  }

  #fail(wanted: StartupModel, error: ServeError): void {
    wanted.failure = newFailure(error)
    const again = error.code === 'CONFLICT' ? '' : '; the server will try again'
    this.#options.warn(`${this.#told(wanted, error).message} (id ${wanted.failure.id})${again}`, error.detail)
  }

  /** What the operator reads. */
  #told({ failedLine, hint, request: { url } }: StartupModel, error: ServeError): ServeError {
    const { code, message, detail } = error
    const where = searchedStore(error, url, this.#options.settings.modelStore)
    return new ServeError(code, `${failedLine}${message}${where}${hint}`, { cause: error, detail })
  }

  /** Its name and version are what its file says, or else its name that of the file. */
  async #identify(wanted: StartupModel): Promise<void> {
    if (wanted.name !== undefined) return
    const { modelStore, maxArchiveFiles } = this.#options.settings
    const { url } = wanted.request
    const index = modelStore === undefined ? undefined : new StoreIndex(modelStore, maxArchiveFiles)
    const stored = (await index?.models().catch(() => undefined)) ?? []
    const found = stored.find(({ location }) => location === url)
    wanted.name = found?.name ?? defaultModelName(archiveName(url))
    wanted.version = found?.version
  }

  #tryLater(wanted: StartupModel, pauseMs: number): void {
    const { stopping } = this.#lifecycle
    const again = async (): Promise<void> => {
      if (stopping.aborted || !this.unloaded.has(wanted)) return
      try {
        await this.#begin(wanted)
        await this.#options.onChange?.()
      } catch (thrown) {
        const error = ServeError.from(thrown)
        if (stopping.aborted) return
        if (error.message !== wanted.failure?.reason) this.#fail(wanted, error)
        if (error.code !== 'CONFLICT') this.#tryLater(wanted, Math.min(2 * pauseMs, LONGEST_PAUSE_MS))
      }
    }
    startTimer(() => void again(), pauseMs).unref()
  }

  /** Its failure is told already, and counts only for those who wait for it. */
  #wait(started: Promise<void>): void {
    started.catch(() => undefined)
    this.#starts.push(started)
  }

  async #start(model: Model): Promise<void> {
    try {
      await model.scale(model.minWorkers, model.maxWorkers)
    } catch (error) {
      const { code, message, detail } = ServeError.from(error)
      // Workers that end with the server, or for another archive, have not failed.
      if (!this.#lifecycle.stopping.aborted && this.#registry.all().includes(model))
        this.#options.warn(
          `Failed to start workers for model ${model.name} version: ${model.version}: ${message}`,
        )
      const what = `Model ${model.name}, version ${model.version}, did not load: ${message}`
      throw new ServeError(code, what, { cause: error, detail })
    }
  }
}

function twin({ request: { url }, name, version }: StartupModel, other: string): ServeError {
  const first = basename(redactUrl(other))
  const publicCause = `${basename(redactUrl(url))} has the name and version of ${first}`
  return new ServeError('CONFLICT', `${first} has the same name and version, ${name} ${version}`, {
    publicCause,
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
