import type { ModelSnapshot, VersionSnapshot } from '../config/model-snapshot.ts'
import type { ModelToLoad } from '../config/settings.ts'
import type { ServeError } from '../../common/errors.ts'
import { type ModelFailure, modelFailed } from './model-failure.ts'
import type { Origin } from './build-model.ts'
import type { RegisterRequest } from './operations.ts'
import type { Restorable } from './snapshot-models.ts'

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
