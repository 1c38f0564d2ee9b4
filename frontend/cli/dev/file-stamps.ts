import { type Dirent, existsSync } from 'node:fs'
import { opendir, stat, readdir } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { fileStamp } from '../../../common/files.ts'
import { isScript, conventionalHandler } from '../../../model-archiver/handler-entry.ts'
import { ARCHIVE_SUFFIX } from '../../../model-archiver/model-names.ts'
import { KEY_FILE_NAME } from '../../auth/token-store.ts'
import { MANIFEST_PATH } from '../../../model-archiver/manifest.ts'
import { MODEL_SETTINGS } from '../../../model-archiver/model-settings.ts'

/** Which content files had: their stamps by absolute path. */
export type FileStamps = ReadonlyMap<string, string>

export interface ReadFolder {
  readonly stamps: FileStamps
  /** The first folder of which something was left out, because there is more than the limits; absolute. */
  readonly unread: string | undefined
}

/** How much of a model is watched. */
export type WatchLimits = Readonly<Record<'filesInFolder' | 'files' | 'folders', number>>

/** A save looks at all files of a model, each with a call of the system. Who has more has data there. */
export const WATCH_LIMITS = { filesInFolder: 1_000, files: 5_000, folders: 1_000 } satisfies WatchLimits

/** Folders of what builds and test runs write. What a handler imports from there is watched all the same. */
const OUTPUTS: ReadonlySet<string> = new Set(['dist', 'build', 'target', 'coverage', 'venv'])

/** What no handler reads: notes, and logs, also the command's own. */
const NO_CODE: ReadonlySet<string> = new Set(['.md', '.log'])

/** Whether a change of the file can change the handler: also the keys of a server in the folder cannot. */
function counts(name: string): boolean {
  return name !== KEY_FILE_NAME && !NO_CODE.has(extname(name)) && !ARCHIVE_SUFFIX.test(name)
}

/**
 * Reads the stamps of the files of a model, without installed packages, outputs of builds, archives, notes,
 * logs and keys. Folders near the top come first, and code before other files.
 */
export async function readFolder(folder: string, limits: WatchLimits = WATCH_LIMITS): Promise<ReadFolder> {
  const stamps = new Map<string, string>()
  const folders = [folder]
  let left = limits.files
  let unread: string | undefined
  for (const at of folders) {
    const listed = await entriesOf(at, limits.filesInFolder * LISTED)
    const entries = listed.filter(({ name }) => !isSkipped(name))
    const below = entries.filter((entry) => entry.isDirectory() && !OUTPUTS.has(entry.name))
    const files = entries.filter((entry) => !entry.isDirectory() && counts(entry.name))
    const looked = codeFirst(files).slice(0, Math.min(left, limits.filesInFolder))
    for (const { name } of looked) await addStamp(stamps, join(at, name))
    const entered = below.slice(0, limits.folders - folders.length)
    for (const { name } of entered) folders.push(join(at, name))
    left -= looked.length
    const isCut = listed.length === limits.filesInFolder * LISTED
    if (isCut || looked.length < files.length || entered.length < below.length) unread ??= at
  }
  return { stamps, unread }
}

/** Entries that are listed for each file that may be looked at: among them the code is found. */
const LISTED = 4

/** At most so many, in the order of the file system: to list a hundred thousand takes a fifth of a second. */
async function entriesOf(folder: string, most: number): Promise<Dirent[]> {
  const entries: Dirent[] = []
  try {
    for await (const entry of await opendir(folder, { bufferSize: 256 })) {
      entries.push(entry)
      if (entries.length === most) break
    }
  } catch {
    // It is gone, or may not be read.
  }
  return entries
}

function codeFirst(files: readonly Dirent[]): Dirent[] {
  const isCode = ({ name }: Dirent): boolean => isScript(name) || CODE.test(name)
  return [...files.filter(isCode), ...files.filter((file) => !isCode(file))]
}

/** Code besides scripts, and what says how it runs. */
const CODE = /^package(?:-lock)?\.json$|^model-settings\.json$|\.(?:py|ya?ml)$/

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

/** Names that belong to no model: hidden ones, installed packages, and what Python compiles. */
function isSkipped(name: string): boolean {
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
