import { readdir, stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileStamp } from '../../../common/file-stamp.ts'
import { ARCHIVE_SUFFIX } from '../../../model-archiver/model-name.ts'
import { KEY_FILE_NAME } from '../../auth/token-store.ts'
import { isSkipped } from './model-folders.ts'

/** Which content files had: their stamps by absolute path. */
export type FileStamps = ReadonlyMap<string, string>

export interface ReadFolder {
  readonly stamps: FileStamps
  /** It and all of its folders, absolute. */
  readonly folders: readonly string[]
}

/** What no handler reads: notes, and logs, also the command's own. */
const NO_CODE: ReadonlySet<string> = new Set(['.md', '.log'])

/** Whether a change of the file can change the handler: also the keys of a server in the folder cannot. */
function counts(name: string): boolean {
  return name !== KEY_FILE_NAME && !NO_CODE.has(extname(name)) && !ARCHIVE_SUFFIX.test(name)
}

/** Reads the stamps of all files of a model, without installed packages, archives, notes, logs and keys. */
export async function readFolder(folder: string): Promise<ReadFolder> {
  const stamps = new Map<string, string>()
  const folders = [folder]
  for (const at of folders) {
    const entries = await readdir(at, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = join(at, entry.name)
      if (isSkipped(entry.name)) continue
      if (entry.isDirectory()) folders.push(path)
      else if (counts(entry.name)) await addStamp(stamps, path)
    }
  }
  return { stamps, folders }
}

/** A file that does not exist has no stamp. */
export async function addStamp(stamps: Map<string, string>, path: string): Promise<void> {
  const stats = await stat(path, { bigint: true }).catch(() => undefined)
  if (stats?.isFile() === true) stamps.set(path, fileStamp(stats))
}

/** The files that were written, made or removed. */
export function changedFiles(before: FileStamps, after: FileStamps): string[] {
  const written = [...after].filter(([path, stamp]) => before.get(path) !== stamp).map(([path]) => path)
  return [...written, ...[...before.keys()].filter((path) => !after.has(path))]
}
