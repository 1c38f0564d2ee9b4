import { existsSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'
import { type FoundModel, StoreIndex } from '../../model-archiver/repository.ts'
import { ServeError } from '../../common/errors.ts'
import type { Settings } from '../config/settings.ts'
import type { Model } from './model.ts'
import { type ModelFailure, publicCauseOf, storedModelNotFound } from './model-errors.ts'
import type { IndexEntry, RegisterRequest, RepositoryOperations } from './operations.ts'

/** Models that come in the place of others, and go, while their requests end beside. */
export interface ReplaceableModels {
  /**
   * Registers a version, waits until it can answer, then retires an older one of the same name and number.
   * @param trusted whether the operator named the url, so that it may lead out of the model store
   * @param signal calls it off while the workers load
   * @throws ServeError like a register request; the older one is still in its place then
   */
  replace(request: RegisterRequest, trusted: boolean, signal?: AbortSignal): Promise<Model>
  /** Unregisters a version. Its open requests finish beside what follows. */
  retire(model: Model): Promise<void>
}

/** A model of the start that could not be loaded. */
export interface FailedModel {
  readonly name: string
  /** Empty: unknown. */
  readonly version: string
  readonly url: string
  readonly failure: ModelFailure
}

/** What the repository needs of the models. */
export interface RepositoryHost extends ReplaceableModels {
  registered(): Model[]
  failed(): FailedModel[]
  /** Gives up the versions of a name that could not be loaded. @returns whether there was one */
  forget(modelName: string): Promise<boolean>
  /** Waits until a worker of a registered version can answer. @throws ServeError WORKER_START_FAILED */
  whenLoaded(model: Model): Promise<void>
}

export class Repository implements RepositoryOperations {
  readonly #host: RepositoryHost
  readonly #modelStore: string | undefined
  readonly #store: StoreIndex | undefined
  readonly #turns = new LoadTurns()
  /** Why the last load of a model of the store failed, by its name. */
  readonly #failures = new Map<string, string>()

  constructor(
    host: RepositoryHost,
    { modelStore, maxArchiveFiles }: Pick<Settings, 'modelStore' | 'maxArchiveFiles'>,
  ) {
    this.#host = host
    this.#modelStore = modelStore
    this.#store = modelStore === undefined ? undefined : new StoreIndex(modelStore, maxArchiveFiles)
  }

  async index(onlyReady = false): Promise<IndexEntry[]> {
    const models = this.#visible()
    const loaded = [...models.map(entryOf), ...this.#host.failed().map(failedEntry)]
    const names = new Set(loaded.map(({ name }) => name))
    const stored = (await this.#stored()).filter(({ name }) => !names.has(name))
    const others = [...new Set(stored.map(({ name }) => name))].map((name): IndexEntry => ({
      name,
      version: '',
      state: 'UNAVAILABLE',
      reason: this.#failures.get(name) ?? 'not loaded',
    }))
    const all = [...loaded, ...others].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
    return onlyReady ? all.filter(({ state }) => state === 'READY') : all
  }

  load(modelName: string): Promise<void> {
    return this.#turns.load(modelName, () => this.#load(modelName))
  }

  unload(modelName: string): Promise<void> {
    return this.#turns.unload(modelName, () => this.#unload(modelName))
  }

  async #load(modelName: string): Promise<void> {
    const known = this.#versions(modelName)
    const stored = (await this.#stored()).filter(({ name }) => name === modelName)
    const { first, second } = byVersion(stored, known)
    const urls = first.length > 0 ? first.map(({ location }) => location) : known.map(({ url }) => url)
    if (urls.length === 0) throw storedModelNotFound(modelName)
    const loaded: Model[] = []
    this.#failures.delete(modelName)
    try {
      for (const url of urls) loaded.push(await this.#loadFrom(url, modelName, known))
      if (second.length > 0) throw twice(second, first)
    } catch (error) {
      this.#failures.set(modelName, notLoaded(publicCauseOf(ServeError.from(error))))
      throw error
    }
    const versions = new Set(loaded.map(({ version }) => version))
    for (const model of known) {
      if (!versions.has(model.version) && this.#isGone(model)) await this.#host.retire(model)
    }
  }

  /** A version that serves, or will, from files that have not changed stays as it is. */
  async #loadFrom(url: string, modelName: string, known: readonly Model[]): Promise<Model> {
    const before = known.filter((model) => model.url === url)
    for (const model of before) {
      if (!canServe(model) || (await model.source?.areUnchanged()) !== true) continue
      await this.#host.whenLoaded(model)
      return model
    }
    const [first] = before
    const { handlerOverride: handler, pin: sha256 } = first ?? {}
    const request = { url, modelName, handler, sha256, synchronous: true }
    return this.#host.replace(request, first !== undefined && isOperators(first))
  }

  async #unload(modelName: string): Promise<void> {
    const models = this.#versions(modelName)
    const isForgotten = await this.#host.forget(modelName)
    if (models.length === 0 && !isForgotten) throw storedModelNotFound(modelName)
    this.#failures.delete(modelName)
    for (const model of models) await this.#host.retire(model)
  }

  /** All models but the nodes of workflows. */
  #visible(): Model[] {
    return this.#host.registered().filter(({ workflowNode }) => workflowNode === undefined)
  }

  #versions(name: string): Model[] {
    return this.#visible().filter((model) => model.name === name)
  }

  async #stored(): Promise<FoundModel[]> {
    return (await this.#store?.models()) ?? []
  }

  /** Whether the files that it was loaded from no longer exist. */
  #isGone({ url }: Model): boolean {
    if (/^[a-z]+:\/\//i.test(url)) return false
    return !existsSync(isAbsolute(url) ? url : join(this.#modelStore ?? '.', url))
  }
}

/** The archives to load, and those with the name and version of another. What is loaded comes first. */
function byVersion(
  stored: readonly FoundModel[],
  known: readonly Model[],
): { first: FoundModel[]; second: FoundModel[] } {
  const isLoaded = ({ location }: FoundModel): boolean => known.some(({ url }) => url === location)
  const inOrder = [...stored.filter(isLoaded), ...stored.filter((model) => !isLoaded(model))]
  const first: FoundModel[] = []
  const second: FoundModel[] = []
  for (const model of inOrder) (first.some((other) => isSame(other, model)) ? second : first).push(model)
  return { first, second }
}

function isSame(one: FoundModel, { name, version }: FoundModel): boolean {
  return version !== undefined && one.name === name && one.version === version
}

function twice(second: readonly FoundModel[], first: readonly FoundModel[]): ServeError {
  const lines = second.map((model) => {
    const { location } = first.find((other) => isSame(other, model))!
    return `${model.location} is not loaded: ${location} has the same name and version, ${model.name} ${model.version}`
  })
  return new ServeError('CONFLICT', `${lines.join('; ')}. Remove one of them.`)
}

/**
 * Whether it came from a path that the operator named, in the store or not; an address is checked again each
 * time.
 */
function isOperators({ loadedAtStartup, url }: Model): boolean {
  return loadedAtStartup && !/^https?:/i.test(url)
}

function canServe({ workers, wakes }: Model): boolean {
  return (workers.wanted > 0 || wakes) && workers.failure === undefined
}

function notLoaded(publicCause: string): string {
  return `not loaded: ${publicCause}`
}

function failedEntry({ name, version, failure }: FailedModel): IndexEntry {
  return { name, version, state: 'UNAVAILABLE', reason: notLoaded(failure.publicCause) }
}

function entryOf({ name, version, workers, wakes }: Model): IndexEntry {
  if (workers.ready > 0 || wakes) return { name, version, state: 'READY', reason: '' }
  if (workers.wanted === 0)
    return { name, version, state: 'UNAVAILABLE', reason: 'the model has no workers; scale it' }
  const failure = workers.lastExit?.publicCause
  if (workers.healthy > 0) return { name, version, state: 'LOADING', reason: failure ?? '' }
  return { name, version, state: 'UNAVAILABLE', reason: failure ?? 'the workers died' }
}

interface Turn {
  /** What was asked last; it ends after all that was asked before. */
  last: Promise<void>
  /** A load that has not begun: further ones join it. */
  waiting: Promise<void> | undefined
}

/**
 * The order of loads and unloads of one name: one after the other. Loads that wait are one, which begins
 * after all of them were asked for, so that it sees the files that each of them saw.
 */
export class LoadTurns {
  readonly #turns = new Map<string, Turn>()

  load(name: string, work: () => Promise<void>): Promise<void> {
    const turn = this.#turn(name)
    if (turn.waiting !== undefined) return turn.waiting
    const run = this.#add(name, turn, () => {
      if (turn.waiting === run) turn.waiting = undefined
      return work()
    })
    turn.waiting = run
    return run
  }

  unload(name: string, work: () => Promise<void>): Promise<void> {
    const turn = this.#turn(name)
    // A load that is asked for from now on comes after this.
    turn.waiting = undefined
    return this.#add(name, turn, work)
  }

  #turn(name: string): Turn {
    const turn = this.#turns.get(name) ?? { last: Promise.resolve(), waiting: undefined }
    this.#turns.set(name, turn)
    return turn
  }

  #add(name: string, turn: Turn, work: () => Promise<void>): Promise<void> {
    const run = turn.last.then(work)
    const ended = run
      .catch(() => undefined)
      .then(() => {
        if (turn.last === ended) this.#turns.delete(name)
      })
    turn.last = ended
    return run
  }
}
