import { readdir } from 'node:fs/promises'
import { basename, join, sep } from 'node:path'
import { environmentFolder } from './environment-model.ts'
import { storedManifest } from './manifest.ts'
import { defaultModelName } from './model-name.ts'
import { readModelSettings } from './model-settings.ts'
import { listStore } from './store.ts'

/** A model of the store, under the name that it is loaded by. */
export interface FoundModel {
  readonly name: string
  /** As a register request names it: a name in the store, or an absolute path in it. */
  readonly location: string
}

/** Folders of versions may stand in a folder of the model's name. */
const MAX_DEPTH = 2
const MAX_FOLDERS = 10_000

/**
 * What a model store holds, for load by name: archives and folders as `listStore` has them, and every folder with a model-settings.json down to
 * two levels. A settings file that cannot be read is left out: loading the folder says why.
 * @throws ServeError CONFIG when the store cannot be read
 */
export async function findModels(modelStore: string): Promise<FoundModel[]> {
  const withSettings = await settingsFolders(modelStore, 1)
  const { models } = await listStore(modelStore)
  const plain = models
    .filter(({ path }) => !withSettings.some(({ location }) => `${location}${sep}`.startsWith(path + sep)))
    .map(async ({ location, path }) => ({ name: await nameWithoutFile(path, location), location }))
  return [...(await Promise.all(plain)), ...withSettings]
}

/** As a start names it: by its manifest; a model that only variables describe may have its name from them. */
async function nameWithoutFile(path: string, location: string): Promise<string> {
  const manifest = await storedManifest(path).catch(() => undefined)
  if (manifest !== undefined) return manifest.model.modelName
  const settings =
    path === environmentFolder(process.env) ? await readModelSettings(path).catch(() => undefined) : undefined
  return settings?.name ?? defaultModelName(location)
}

async function settingsFolders(folder: string, depth: number): Promise<FoundModel[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const found: FoundModel[] = []
  for (const { name } of entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))) {
    if (found.length >= MAX_FOLDERS) break
    const path = join(folder, name)
    const settings = await readModelSettings(path).catch(() => undefined)
    if (settings !== undefined)
      found.push({ name: settings.name ?? nameOf(path, settings.version), location: path })
    else if (depth < MAX_DEPTH) found.push(...(await settingsFolders(path, depth + 1)))
  }
  return found
}

/** The folder may be called like the version; then the one above has the name. */
function nameOf(path: string, version: string | undefined): string {
  const own = basename(path)
  return own === version ? basename(join(path, '..')) : own
}
