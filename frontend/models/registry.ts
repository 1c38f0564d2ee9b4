import { ServeError } from '../../common/errors.ts'
import type { Model } from './model.ts'
import { modelNotFound, told } from './not-found.ts'

interface Versions {
  default: string
  readonly byVersion: Map<string, Model>
}

/** All models by name and version. One version of each name is its default. */
export class Registry {
  readonly #models = new Map<string, Versions>()

  /** The first version of a name becomes its default. @throws ServeError CONFLICT */
  add(model: Model): void {
    const versions = this.#models.get(model.name)
    if (versions === undefined) {
      this.#models.set(model.name, { default: model.version, byVersion: new Map([[model.version, model]]) })
    } else {
      this.checkFree(model.name, model.version)
      versions.byVersion.set(model.version, model)
    }
  }

  /** Replaces the version with the same name and number, and returns the replaced one. */
  put(model: Model): Model | undefined {
    const versions = this.#models.get(model.name)
    const old = versions?.byVersion.get(model.version)
    if (versions === undefined) this.add(model)
    else versions.byVersion.set(model.version, model)
    return old === model ? undefined : old
  }

  has(name: string, version: string): boolean {
    return this.#models.get(name)?.byVersion.has(version) ?? false
  }

  /** @throws ServeError CONFLICT when the version is already registered */
  checkFree(name: string, version: string): void {
    if (this.has(name, version)) {
      throw new ServeError('CONFLICT', `Model version ${version} is already registered for model ${name}`)
    }
  }

  /** @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND */
  get(name: string, version?: string): Model {
    const versions = this.#versions(name)
    const model = versions.byVersion.get(version ?? versions.default)
    if (model === undefined) {
      throw new ServeError(
        'VERSION_NOT_FOUND',
        `Model version: ${told(version!)} does not exist for model: ${name}`,
      )
    }
    return model
  }

  /** All versions of a name. @throws ServeError MODEL_NOT_FOUND */
  versions(name: string): Model[] {
    return [...this.#versions(name).byVersion.values()]
  }

  /**
   * Makes a version the default of its name.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND (its message has no colons here, as in TorchServe)
   */
  setDefault(name: string, version: string): void {
    const versions = this.#versions(name)
    if (!versions.byVersion.has(version)) {
      throw new ServeError(
        'VERSION_NOT_FOUND',
        `Model version ${told(version)} does not exist for model ${name}`,
      )
    }
    versions.default = version
  }

  /** Removes a version. @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND, DEFAULT_VERSION */
  remove(name: string, version?: string): Model {
    const model = this.get(name, version)
    const versions = this.#versions(name)
    if (versions.byVersion.size === 1) {
      this.#models.delete(name)
    } else if (versions.default === model.version) {
      throw new ServeError('DEFAULT_VERSION', `Cannot remove default version for model ${name}`)
    } else {
      versions.byVersion.delete(model.version)
    }
    return model
  }

  /** Removes exactly this model, even a default version; another version then becomes the default. */
  discard(model: Model): void {
    const versions = this.#models.get(model.name)
    if (versions?.byVersion.get(model.version) !== model) return
    versions.byVersion.delete(model.version)
    const [next] = versions.byVersion.keys()
    if (next === undefined) this.#models.delete(model.name)
    else if (versions.default === model.version) versions.default = next
  }

  /** The default version of every name, sorted by name. */
  defaults(): Model[] {
    const names = [...this.#models.keys()].sort()
    return names.map((name) => {
      const versions = this.#models.get(name)!
      return versions.byVersion.get(versions.default)!
    })
  }

  all(): Model[] {
    return [...this.#models.values()].flatMap((versions) => [...versions.byVersion.values()])
  }

  /** Functions of a workflow are a part of it: for everybody else there is no such model. */
  #versions(name: string): Versions {
    const versions = this.#models.get(name)
    const isInternal = versions?.byVersion.get(versions.default)?.workflowNode === 'functions'
    if (versions === undefined || isInternal) throw modelNotFound(name)
    return versions
  }
}
