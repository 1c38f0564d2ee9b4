import type { ModelSnapshot, VersionSnapshot } from '../config/model-snapshot.ts'
import type { Restorable } from './snapshot-models.ts'

/**
 * Versions of the snapshot that are not loaded: they wait for their turn, or could not be loaded. Later
 * snapshots keep their entries as they are, so that no start loses a model.
 */
export class AbsentVersions {
  readonly #versions = new Map<string, Restorable>()

  add(version: Restorable): void {
    this.#versions.set(keyOf(version), version)
  }

  has(version: Restorable): boolean {
    return this.#versions.has(keyOf(version))
  }

  loaded(version: Restorable): void {
    this.#versions.delete(keyOf(version))
  }

  /**
   * Gives up a version, or all of a name. @returns whether there was one
   * @param version default: all versions
   */
  forget(name: string, version?: string): boolean {
    const found = this.#of(name).filter((each) => version === undefined || each.version === version)
    for (const each of found) this.loaded(each)
    return found.length > 0
  }

  /** Another version of the name became its default. */
  defaultChanged(name: string): void {
    for (const each of this.#of(name)) this.add({ ...each, state: { ...each.state, defaultVersion: false } })
  }

  /** The models of a snapshot, with the entries of these. */
  addTo(models: ModelSnapshot['models']): ModelSnapshot['models'] {
    const all = new Map(
      Object.entries(models).map(([name, versions]) => [name, new Map(Object.entries(versions))]),
    )
    for (const { name, version, state } of this.#versions.values()) {
      const versions = all.get(name) ?? new Map<string, VersionSnapshot>()
      all.set(name, versions)
      if (versions.has(version)) continue
      if (state.defaultVersion)
        for (const [key, other] of versions) versions.set(key, { ...other, defaultVersion: false })
      versions.set(version, state)
    }
    return Object.fromEntries([...all].map(([name, versions]) => [name, Object.fromEntries(versions)]))
  }

  #of(name: string): Restorable[] {
    return [...this.#versions.values()].filter((each) => each.name === name)
  }
}

function keyOf({ name, version }: Restorable): string {
  return JSON.stringify([name, version])
}
