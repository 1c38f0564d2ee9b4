import { stat } from 'node:fs/promises'
import { basename, isAbsolute, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { ServeError } from '../../common/errors.ts'
import type { ModelSnapshot, VersionSnapshot } from '../config/model-snapshot.ts'
import type { ModelToLoad } from '../config/settings.ts'
import type { Model } from './model.ts'
import type { RegisterRequest } from './operations.ts'
import type { Registry } from './registry.ts'
import { modelFailed, type ModelFailure } from './model-errors.ts'
import type { Origin } from './build-model.ts'

/** The models as a snapshot stores them (docs/snapshots.md), without the nodes of workflows. */
export function snapshotModels(registry: Registry): ModelSnapshot['models'] {
  const own = registry.defaults().filter((model) => model.workflowNode === undefined)
  const names = own.map((model) => model.name)
  return Object.fromEntries(
    names.map((name) => {
      const current = registry.get(name)
      const versions = registry.versions(name).map((model) => [model.version, versionOf(model, current)])
      return [name, Object.fromEntries(versions) as Record<string, VersionSnapshot>]
    }),
  )
}

function versionOf(model: Model, current: Model): VersionSnapshot {
  const { settings, url } = model
  const marName = archiveName(url)
  return {
    defaultVersion: model === current,
    marName,
    minWorkers: model.minWorkers,
    maxWorkers: model.maxWorkers,
    batchSize: settings.batchSize,
    maxBatchDelay: settings.maxBatchDelay,
    responseTimeout: settings.responseTimeout,
    startupTimeout: settings.startupTimeout,
    runtimeType: model.prepared.runtime,
    parallelLevel: settings.parallelLevel > 0 ? settings.parallelLevel : undefined,
    modelUrl: url === marName ? undefined : url,
    handler: model.handlerOverride,
    sha256: model.pin,
    archiveSha256: model.prepared.archive?.sha256,
  }
}

/** The file that an address or a path ends with. */
export function archiveName(url: string): string {
  if (!URL.canParse(url)) return basename(url)
  const name = basename(new URL(url).pathname)
  return /%(?![0-9a-f]{2})/i.test(name) ? name : decodeURIComponent(name)
}

/** One version of a snapshot, with the path of its files. */
export interface Restorable {
  readonly name: string
  readonly version: string
  readonly state: VersionSnapshot
  readonly path: string
}

/**
 * The versions of a snapshot, the default version of each model first.
 * @param hint ends the message of the error: where the snapshot is
 * @throws ServeError MODEL_NOT_FOUND with TorchServe's message when an archive is missing
 */
export async function restorable(
  snapshot: ModelSnapshot,
  modelStore: string | undefined,
  hint: string,
): Promise<Restorable[]> {
  const found: Restorable[] = []
  for (const [name, versions] of Object.entries(snapshot.models)) {
    for (const [version, state] of Object.entries(versions)) {
      const path = await archivePath(state, modelStore)
      if (path === undefined) throw missing(name, version, hint)
      found.push({ name, version, state, path })
    }
  }
  return found.sort((a, b) => Number(b.state.defaultVersion) - Number(a.state.defaultVersion))
}

/** A path outside the store is used as it is; everything else, downloads included, is in the store. */
async function archivePath(
  { marName, modelUrl }: VersionSnapshot,
  modelStore: string | undefined,
): Promise<string | undefined> {
  const stored = /^\.{0,2}$/.test(basename(marName)) ? undefined : basename(marName)
  const candidates = [localPath(modelUrl), modelStore && stored && join(modelStore, stored)]
  for (const path of candidates) {
    if (path !== undefined && (await stat(path).catch(() => undefined)) !== undefined) return path
  }
  return undefined
}

function missing(name: string, version: string, hint: string): ServeError {
  const what = `Model archive file for model :${name}, version :${version} not found in model store`
  return new ServeError('MODEL_NOT_FOUND', `${what}${hint}`)
}

function localPath(url: string | undefined): string | undefined {
  if (url === undefined) return undefined
  if (/^file:/i.test(url)) return fileURLToPath(url)
  return isAbsolute(url) ? url : undefined
}

/** The register request of a model that the configuration names. */
export function loadRequest({ location, name, sha256, config }: ModelToLoad): RegisterRequest {
  return { url: location, modelName: name, sha256, config, synchronous: false }
}

/** The register request that restores a version. */
export function restoreRequest({ name, state, path }: Restorable): RegisterRequest {
  return {
    url: path,
    modelName: name,
    handler: state.handler,
    sha256: state.sha256,
    runtime: state.runtimeType,
    batchSize: state.batchSize,
    maxBatchDelay: state.maxBatchDelay,
    responseTimeout: state.responseTimeout,
    startupTimeout: state.startupTimeout,
    initialWorkers: state.minWorkers,
    maxWorkers: Math.max(state.minWorkers, state.maxWorkers),
    synchronous: false,
  }
}

/** A model that the start is to load. */
export interface StartupModel {
  readonly request: RegisterRequest
  readonly origin: Origin
  /**
   * Its place in the list. Of one name the first version is the default, and of one name and version the
   * first archive is loaded.
   */
  readonly place: number
  /** Begins the line of the log about its failure, and `hint` ends it. */
  readonly failedLine: string
  readonly hint: string
  /** Its entry in the snapshot; undefined: it comes from none. */
  restorable: Restorable | undefined
  /** Undefined until its files are read. */
  name: string | undefined
  version: string | undefined
  /** Why it could not be loaded; undefined: it waits for its turn. */
  failure: ModelFailure | undefined
}

/**
 * Models of the start that are not loaded: they wait for their turn, or have failed. Later snapshots keep
 * them as the snapshot or the configuration names them, so that no start loses a model.
 */
export class UnloadedModels {
  readonly #models = new Set<StartupModel>()

  add(model: StartupModel): void {
    this.#models.add(model)
  }

  has(model: StartupModel): boolean {
    return this.#models.has(model)
  }

  loaded(model: StartupModel): void {
    this.#models.delete(model)
  }

  /** Those that have failed. */
  failed(): (StartupModel & { failure: ModelFailure })[] {
    return [...this.#models].flatMap((model) => (hasFailed(model) ? [model] : []))
  }

  /** What requests for a name, or a version of it, are answered with; undefined: it has not failed. */
  failure(name: string, version?: string): ServeError | undefined {
    const found = this.#of(name, version).find(hasFailed)
    return found && modelFailed(name, found.failure)
  }

  /**
   * Gives up a version, or all of a name. @returns whether there was one
   * @param version default: all versions
   */
  forget(name: string, version?: string): boolean {
    const found = this.#of(name, version)
    for (const each of found) this.loaded(each)
    return found.length > 0
  }

  /** Another version of the name became its default. */
  defaultChanged(name: string): void {
    for (const each of this.#of(name))
      if (each.restorable !== undefined)
        each.restorable = { ...each.restorable, state: { ...each.restorable.state, defaultVersion: false } }
  }

  /** The models of a snapshot, with the entries of these. */
  addTo(models: ModelSnapshot['models']): ModelSnapshot['models'] {
    const all = new Map(
      Object.entries(models).map(([name, versions]) => [name, new Map(Object.entries(versions))]),
    )
    for (const { restorable } of this.#models) {
      if (restorable === undefined) continue
      const { name, version, state } = restorable
      const versions = all.get(name) ?? new Map<string, VersionSnapshot>()
      all.set(name, versions)
      if (versions.has(version)) continue
      if (state.defaultVersion)
        for (const [key, other] of versions) versions.set(key, { ...other, defaultVersion: false })
      versions.set(version, state)
    }
    return Object.fromEntries([...all].map(([name, versions]) => [name, Object.fromEntries(versions)]))
  }

  /** Those of the configuration, as it names them. */
  configured(): ModelToLoad[] {
    return [...this.#models]
      .filter(({ restorable }) => restorable === undefined)
      .map(({ request: { modelName: name, url: location, sha256 } }) => ({ name, location, sha256 }))
  }

  #of(name: string, version?: string): StartupModel[] {
    const isMeant = (known: string | undefined) => [known, version].includes(undefined) || known === version
    return [...this.#models].filter((each) => each.name === name && isMeant(each.version))
  }
}

function hasFailed(model: StartupModel): model is StartupModel & { failure: ModelFailure } {
  return model.failure !== undefined
}
