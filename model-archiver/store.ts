import { readdir, stat } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join, sep } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { environmentFolder } from './environment-model.ts'
import { MANIFEST_PATH } from './manifest.ts'
import { conventionalHandler, modelFolder } from './model-folder.ts'
import { ARCHIVE_SUFFIX } from './model-name.ts'
import { MODEL_SETTINGS } from './model-settings.ts'

export interface StoredModel {
  /** Name of the file or folder in the store. */
  readonly location: string
  /** Absolute path of it. */
  readonly path: string
}

export interface StoreListing {
  /** What `load_models=all` loads, by name. */
  readonly models: readonly StoredModel[]
  /** What stands for a model that is loaded already, each with the reason in one sentence. */
  readonly skipped: readonly { readonly location: string; readonly reason: string }[]
  /** Absolute paths of the folders with a model-settings.json; several may stand below one of `models`. */
  readonly withSettings: readonly string[]
  /** Absolute path of the folder whose model variables describe, in the store or elsewhere; undefined: there is none. */
  readonly fromVariables: string | undefined
}

/**
 * What a model store holds: archives (.mar, .model, .tgz, .tar.gz) and folders with a manifest or a handler. Hidden names do
 * not count.
 *
 * No model is met twice: of entries that differ only by their ending (`x.mar`, `x.tar.gz`, the folder `x`) the first in that order is the
 * model and the others are skipped, because an archive is what was packed to be served and the folder is its source.
 *
 * A model-settings.json makes a model of its folder down to two levels, so that versions may stand below a folder of their name, and of the store itself;
 * then what else is in the store is that model's.
 *
 * Where no folder has a model-settings.json, a model that variables describe belongs to it (environment-model.ts).
 * @throws ServeError CONFIG when the store cannot be read
 */
export async function listStore(
  modelStore: string,
  env: NodeJS.ProcessEnv = process.env,
): Promise<StoreListing> {
  const models = new Map<string, StoredModel>()
  const skipped: { location: string; reason: string }[] = []
  const withSettings = await settingsFolders(modelStore)
  const isOne = withSettings.includes(modelStore)
  for (const location of (await names(modelStore)).sort(byFormat)) {
    const path = join(modelStore, location)
    if (isOne || !(await isModel(path))) continue
    const stem = location.replace(ARCHIVE_SUFFIX, '')
    const first = models.get(stem)
    if (first === undefined) models.set(stem, { location, path })
    else skipped.push({ location, reason: `${location} is skipped: ${first.location} is the same model.` })
  }
  for (const path of withSettings) {
    const isKnown = [...models.values()].some((model) => `${path}${sep}`.startsWith(`${model.path}${sep}`))
    if (!isKnown || isOne) models.set(path, { location: path, path })
  }
  const fromVariables = environmentFolder(env)
  if (
    fromVariables !== undefined &&
    !existsSync(join(fromVariables, MODEL_SETTINGS)) &&
    ![...models.values()].some(hasSettings)
  )
    models.set(fromVariables, { location: fromVariables, path: fromVariables })
  const sorted = [...models.values()].sort((a, b) => compare(a.location, b.location))
  return { models: sorted, skipped, withSettings, fromVariables }
}

function hasSettings({ path }: StoredModel): boolean {
  return existsSync(join(path, MODEL_SETTINGS))
}

/** Folders of versions may stand in a folder of the model's name. */
const MAX_DEPTH = 2
const MAX_FOLDERS = 10_000

/** The store and the folders in it, down to two levels, that have a model-settings.json; what is below another one's is its own matter, but for the store's. */
async function settingsFolders(folder: string, depth = 0): Promise<string[]> {
  const here = existsSync(join(folder, MODEL_SETTINGS)) ? [folder] : []
  if (depth === MAX_DEPTH || (here.length > 0 && depth > 0)) return here
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const found = here
  for (const { name } of entries.filter((entry) => entry.isDirectory() && !entry.name.startsWith('.'))) {
    if (found.length >= MAX_FOLDERS) break
    found.push(...(await settingsFolders(join(folder, name), depth + 1)))
  }
  return found
}

async function names(modelStore: string): Promise<string[]> {
  try {
    return (await readdir(modelStore)).filter((name) => !name.startsWith('.'))
  } catch (error) {
    throw new ServeError('CONFIG', `Model store ${modelStore} cannot be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

async function isModel(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isFile()) return ARCHIVE_SUFFIX.test(path)
  if (!stats?.isDirectory()) return false
  const folder = await modelFolder(path).catch(() => undefined)
  return (
    folder !== undefined &&
    (existsSync(join(folder, MANIFEST_PATH)) ||
      existsSync(join(folder, MODEL_SETTINGS)) ||
      conventionalHandler(folder) !== undefined)
  )
}

const FORMATS = ['.mar', '.model', '.tgz', '.tar.gz', '']

function byFormat(a: string, b: string): number {
  return rank(a) - rank(b) || compare(a, b)
}

function rank(name: string): number {
  return FORMATS.findIndex((suffix) => name.toLowerCase().endsWith(suffix))
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
