import { sep } from 'node:path'
import { storedManifest } from './manifest.ts'
import { defaultModelName } from './model-name.ts'
import { readModelSettings, settingsName } from './model-settings.ts'
import { listStore } from './store.ts'

/** A model of the store, with its name for loading. */
export interface FoundModel {
  readonly name: string
  /** `url` for a register request: a name in the store, or an absolute path in it. */
  readonly location: string
}

/**
 * The models of a store, for loading by name: the archives and folders of `listStore`. Skips unreadable
 * settings files; loading the folder reports the error.
 * @param maxFiles maximum entries of an archive that is opened for its name
 * @throws ServeError CONFIG when the store cannot be read
 */
export async function findModels(modelStore: string, maxFiles?: number): Promise<FoundModel[]> {
  const { models, fromVariables, ...listing } = await listStore(modelStore)
  const withSettings = await namedBySettings(listing.withSettings)
  const plain = models
    .filter(({ path }) => !withSettings.some(({ location }) => `${location}${sep}`.startsWith(path + sep)))
    .map(async ({ location, path }) => ({
      name: await nameWithoutFile(path, location, path === fromVariables, maxFiles),
      location,
    }))
  return [...(await Promise.all(plain)), ...withSettings]
}

/** Name from the manifest, as at start; a model that only variables describe may have its name from them. */
async function nameWithoutFile(
  path: string,
  location: string,
  described: boolean,
  maxFiles: number | undefined,
): Promise<string> {
  const manifest = await storedManifest(path, maxFiles).catch(() => undefined)
  if (manifest !== undefined) return manifest.model.modelName
  const settings = described ? await readModelSettings(path).catch(() => undefined) : undefined
  return settings?.name ?? defaultModelName(location)
}

async function namedBySettings(folders: readonly string[]): Promise<FoundModel[]> {
  const found = folders.map(async (location) => {
    const settings = await readModelSettings(location).catch(() => undefined)
    return settings === undefined ? [] : [{ name: settingsName(location, settings), location }]
  })
  return (await Promise.all(found)).flat()
}
