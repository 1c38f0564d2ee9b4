import { stat } from 'node:fs/promises'
import { sep } from 'node:path'
import { fileStamp } from '../common/files.ts'
import { absent } from '../common/errors.ts'
import { storedManifest } from './manifest.ts'
import { defaultModelName } from './model-names.ts'
import { readModelSettings, settingsName } from './model-settings.ts'
import { listStore, type StoredModel } from './store.ts'
import { Turns } from './turns.ts'

/** A model of the store, with its name for loading. */
export interface FoundModel {
  readonly name: string
  /** Undefined: only the whole archive says it. */
  readonly version: string | undefined
  /** `url` for a register request: a name in the store, or an absolute path in it. */
  readonly location: string
}

type Identity = Pick<FoundModel, 'name' | 'version'>

/** Archives and folders that are read at the same time, however many ask. */
const MAX_READS = 4
const DEFAULT_VERSION = '1.0'

/** The models of a store by name. An archive is read again only when its file has changed. */
export class StoreIndex {
  readonly #store: string
  readonly #maxFiles: number | undefined
  readonly #turns = new Turns(MAX_READS)
  /** By path. */
  readonly #archives = new Map<string, { readonly stamp: string; readonly identity: Identity }>()

  /** @param maxFiles maximum entries of an archive that is opened for its name */
  constructor(modelStore: string, maxFiles?: number) {
    this.#store = modelStore
    this.#maxFiles = maxFiles
  }

  /**
   * The archives and folders of `listStore`, in its order. Skips unreadable settings files; loading the
   * folder reports the error.
   * @throws ServeError CONFIG when the store cannot be read
   */
  async models(): Promise<FoundModel[]> {
    const { models, fromVariables, withSettings } = await listStore(this.#store)
    const described = (await Promise.all(withSettings.map((folder) => this.#described(folder)))).flat()
    const plain = models.filter(
      ({ path }) => !described.some(({ location }) => `${location}${sep}`.startsWith(path + sep)),
    )
    const found = plain.map(async (model) => {
      const identity = await this.#inTurn(() => this.#identify(model, model.path === fromVariables))
      return { ...identity, location: model.location }
    })
    const all = [...(await Promise.all(found)), ...described]
    const paths = new Set(models.map(({ path }) => path))
    for (const path of this.#archives.keys()) if (!paths.has(path)) this.#archives.delete(path)
    return all
  }

  async #described(location: string): Promise<FoundModel[]> {
    const settings = await this.#inTurn(() => readModelSettings(location).catch(absent))
    if (settings === undefined) return []
    const name = settingsName(location, settings)
    return [{ name, version: settings.version ?? DEFAULT_VERSION, location }]
  }

  /** @param fromVariables whether only variables describe it, which may have its name */
  async #identify({ path, location }: StoredModel, fromVariables: boolean): Promise<Identity> {
    const stats = await stat(path, { bigint: true }).catch(() => undefined)
    const stamp = stats?.isFile() === true ? fileStamp(stats) : undefined
    const known = this.#archives.get(path)
    if (known !== undefined && known.stamp === stamp) return known.identity
    const manifest = await storedManifest(path, this.#maxFiles).catch(absent)
    let identity: Identity
    if (manifest === undefined) {
      const settings = fromVariables ? await readModelSettings(path).catch(absent) : undefined
      // A compressed tar has to be unpacked to know more.
      const version = /\.(tgz|tar\.gz)$/i.test(path) ? undefined : DEFAULT_VERSION
      identity = { name: settings?.name ?? defaultModelName(location), version: settings?.version ?? version }
    } else identity = { name: manifest.model.modelName, version: manifest.model.modelVersion }
    if (stamp !== undefined) this.#archives.set(path, { stamp, identity })
    return identity
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    await this.#turns.take()
    try {
      return await work()
    } finally {
      this.#turns.give()
    }
  }
}
