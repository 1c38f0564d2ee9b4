import { sep } from 'node:path'
import { storedManifest } from './manifest.ts'
import { defaultModelName } from './model-name.ts'
import { readModelSettings, settingsName } from './model-settings.ts'
import { listStore } from './store.ts'

/** A model of the store, under the name that it is loaded by. */
export interface FoundModel {
  readonly name: string
  /** As a register request names it: a name in the store, or an absolute path in it. */
  readonly location: string
}

/**
 * What a model store holds, for load by name: archives and folders as `listStore` has them. A settings file that cannot be read is left out: loading the folder says why.
 * @param maxFiles entries of an archive that is looked into for its name
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

/** As a start names it: by its manifest; a model that only variables describe may have its name from them. */
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
