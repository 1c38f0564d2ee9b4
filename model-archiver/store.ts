import { readdir, stat } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { join, sep } from 'node:path'
import { ServeError, absent } from '../common/errors.ts'
import { environmentFolder, MODEL_SETTINGS } from './model-settings.ts'
import { MANIFEST_PATH } from './manifest.ts'
import { conventionalHandler, modelFolder, NO_HANDLER } from './handler-entry.ts'
import { ARCHIVE_SUFFIX } from './model-names.ts'

export interface StoredModel {
  /** Name of the file or folder in the store. */
  readonly location: string
  /** Its absolute path. */
  readonly path: string
}

export interface StoreListing {
  /** The models that `load_models=all` loads, by name. */
  readonly models: readonly StoredModel[]
  /** Skipped entries, each with the reason in one sentence. */
  readonly skipped: readonly { readonly location: string; readonly reason: string }[]
  /** Absolute paths of folders with a model-settings.json; one of `models` may contain several. */
  readonly withSettings: readonly string[]
  /** Absolute path of the folder of the model that only variables describe; undefined: none. */
  readonly fromVariables: string | undefined
}

/**
 * The content of a model store: archives (.mar, .model, .tgz, .tar.gz) and folders with a manifest or a
 * handler. Ignores hidden names.
 *
 * Of entries that differ only by extension (`x.mar`, `x.tar.gz`, the folder `x`) the first in that order is
 * the model and the others are skipped: the archive was packed to be served, and the folder is its source.
 *
 * A model-settings.json makes its folder a model, down to two levels, so that a model's folder can contain
 * its versions. In the store itself it makes the whole store one model. Without such a file, MLSERVER_MODEL_
 * variables may describe one model (environment-model.ts). A store without any of these that has the files of
 * a model itself is that model: KServe mounts what `storageUri` names, be it a store or a model.
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
    if (isOne) continue
    if (!(await isModel(path))) {
      if (await isOther(path, withSettings))
        skipped.push({ location, reason: `${location} is skipped: ${NO_HANDLER}.` })
      continue
    }
    const stem = location.replace(ARCHIVE_SUFFIX, '')
    const first = models.get(stem)
    if (first === undefined) models.set(stem, { location, path })
    else
      skipped.push({ location, reason: `${location} is skipped: ${first.location} contains the same model.` })
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
  if (models.size === 0 && describesModel(modelStore)) {
    models.set(modelStore, { location: modelStore, path: modelStore })
    skipped.length = 0
  }
  const sorted = [...models.values()].sort((a, b) => compare(a.location, b.location))
  return { models: sorted, skipped, withSettings, fromVariables }
}

function hasSettings({ path }: StoredModel): boolean {
  return existsSync(join(path, MODEL_SETTINGS))
}

/** A model's folder may contain folders of versions. */
const MAX_DEPTH = 2
const MAX_FOLDERS = 10_000

/**
 * The folders with a model-settings.json, down to two levels. Does not search below such a folder, except the
 * store itself.
 */
async function settingsFolders(folder: string, depth = 0): Promise<string[]> {
  const here = existsSync(join(folder, MODEL_SETTINGS)) ? [folder] : []
  if (depth === MAX_DEPTH || (here.length > 0 && depth > 0)) return here
  const entries = (await readdir(folder, { withFileTypes: true }).catch(absent)) ?? []
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
    // A start has checked it; Seldon Core's agent may make its folder later.
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return []
    throw new ServeError('CONFIG', `Model store ${modelStore} cannot be read: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

async function isModel(path: string): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  if (stats?.isFile()) return ARCHIVE_SUFFIX.test(path)
  if (!stats?.isDirectory()) return false
  const folder = await modelFolder(path).catch(absent)
  return folder !== undefined && (existsSync(join(folder, MODEL_SETTINGS)) || describesModel(folder))
}

/** Whether the folder has a manifest, or a handler that needs none. */
function describesModel(folder: string): boolean {
  return (
    existsSync(join(folder, MANIFEST_PATH)) ||
    (existsSync(folder) && conventionalHandler(folder) !== undefined)
  )
}

/** A folder that is no model, and contains none. */
async function isOther(path: string, withSettings: readonly string[]): Promise<boolean> {
  const stats = await stat(path).catch(() => undefined)
  return stats?.isDirectory() === true && !withSettings.some((each) => each.startsWith(`${path}${sep}`))
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
