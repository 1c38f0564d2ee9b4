import { randomBytes } from 'node:crypto'
import { lstat, mkdir, symlink, writeFile } from 'node:fs/promises'
import { realpathSync, renameSync, rmSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { makeFolder, removeFolder } from '../common/files.ts'
import { claimFolder, sweepFolders } from './owner-file.ts'
import { serverModules } from './package-root.ts'
import { foldersAbove } from './reach.ts'

/**
 * The temporary folder of one loaded model. Its layout makes Node's package lookup find packages in the right
 * order from a module in `place`, without hooks:
 *
 *     <tempDir>/models/<32 hex>/owner                         which process it belongs to
 *     <tempDir>/models/<32 hex>/package.json                  nobody looks for one above
 *     <tempDir>/models/<32 hex>/node_modules                  -> where the server is installed
 *     <tempDir>/models/<32 hex>/p/node_modules/torchserve-ts  -> the running server's package
 *     <tempDir>/models/<32 hex>/p/                            the place
 */
export interface Workspace {
  readonly root: string
  /** Parent folder for models. */
  readonly place: string
  /** The node_modules folders above it and in `others` that are neither its own nor linked from it. */
  closedModules(others: readonly string[]): string[]
  /** Removes the folder; does not follow links. */
  dispose(): Promise<void>
}

/**
 * Makes a new workspace.
 * @param modules node_modules folders between torchserve-ts and the server's install, nearest first
 * @param packageRoot the running torchserve-ts package
 */
export async function createWorkspace(
  tempDir: string,
  packageRoot: string,
  modules: readonly string[] = [],
): Promise<Workspace> {
  const models = join(tempDir, 'models')
  await makeFolder(models, 0o700)
  await refuseForeign(models)
  const root = join(models, randomBytes(16).toString('hex'))
  await mkdir(root, { mode: 0o700 })
  const disposed = removeAtExit(root)
  const dispose = async (): Promise<void> => {
    await removeFolder(root)
    disposed()
  }
  try {
    claimFolder(root)
    const linked = [serverModules(packageRoot), ...modules].map((path) => path && realpathSync(path))
    const real = realpathSync(root)
    const above = foldersAbove(real).map((folder) => join(folder, 'node_modules'))
    const closedModules = (others: readonly string[]): string[] =>
      [...above, ...others].filter((path) => !linked.includes(path) && !path.startsWith(real + sep))
    return { root, place: await layOut(root, packageRoot, modules), closedModules, dispose }
  } catch (error) {
    await dispose()
    throw error
  }
}

/** Removes the workspaces of killed servers; see `sweepFolders`. */
export async function sweepWorkspaces(tempDir: string, left?: (line: string) => void): Promise<void> {
  await sweepFolders(join(tempDir, 'models'), /^[0-9a-f]{32}$/, left)
}

async function layOut(root: string, packageRoot: string, modules: readonly string[]): Promise<string> {
  const install = serverModules(packageRoot)
  await writeFile(join(root, 'package.json'), '{}')
  if (install !== undefined) await link(install, join(root, 'node_modules'))
  let place = join(root, 'p')
  for (const folder of modules.toReversed()) {
    await mkdir(place)
    await link(folder, join(place, 'node_modules'))
    place = join(place, 'p')
  }
  await makeFolder(join(place, 'node_modules'))
  await link(packageRoot, join(place, 'node_modules', 'torchserve-ts'))
  return place
}

/** The owner of the folder could replace a model under the server. */
async function refuseForeign(folder: string): Promise<void> {
  const stats = await lstat(folder)
  const own = process.getuid === undefined || stats.uid === process.getuid()
  if (stats.isDirectory() && own) return
  throw new ServeError(
    'CONFIG',
    `Folder ${folder} belongs to another user; set TEMP to a folder of your own.`,
  )
}

/** A junction on Windows, which needs no privileges; a symbolic link elsewhere. */
function link(target: string, path: string): Promise<void> {
  return symlink(target, path, 'junction')
}

const doomed = new Set<string>()
let watching = false

/**
 * Removes a file or folder when this process exits for any reason but a kill, after which the next start
 * removes it.
 * @returns a function that cancels this, for a path that was removed or must stay
 */
export function removeAtExit(path: string): () => void {
  if (!watching) process.once('exit', removeAll)
  watching = true
  doomed.add(path)
  return () => void doomed.delete(path)
}

/** Renamed first, so that a thread that still writes cannot recreate files below the old name. */
function removeAll(): void {
  for (const path of doomed) {
    const aside = join(dirname(path), randomBytes(16).toString('hex'))
    try {
      renameSync(path, aside)
      rmSync(aside, { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Already removed, or not removable; no way left to report it.
    }
  }
}
