import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { MANIFEST_PATH } from '../../../model-archiver/manifest.ts'
import { conventionalHandler } from '../../../model-archiver/handler-entry.ts'
import { MODEL_SETTINGS } from '../../../model-archiver/model-settings.ts'

/** Names that belong to no model: hidden ones, installed packages, and what Python compiles. */
export function isSkipped(name: string): boolean {
  return name.startsWith('.') || name === 'node_modules' || name === '__pycache__'
}

/**
 * The folder itself if it is a model, else those of its folders that are; absolute paths, sorted. None: the
 * folder does not exist, or has no model.
 */
export async function findModelFolders(folder: string): Promise<string[]> {
  if (isModelFolder(folder)) return [folder]
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries
    .filter((entry) => entry.isDirectory() && !isSkipped(entry.name))
    .map(({ name }) => join(folder, name))
    .filter(isModelFolder)
    .sort()
}

/** Whether it has a handler, or says in a file which one. */
export function isModelFolder(folder: string): boolean {
  try {
    const says = [MANIFEST_PATH, MODEL_SETTINGS].some((file) => existsSync(join(folder, file)))
    return says || conventionalHandler(folder) !== undefined
  } catch {
    return false // it has just been removed
  }
}
