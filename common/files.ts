import { access, open, opendir, rename, rmdir, statfs, unlink } from 'node:fs/promises'
import { type BigIntStats, existsSync, mkdirSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { randomUUID } from 'node:crypto'
import { startProgram } from './start-program.ts'

/** Whether there is anything at a path. Links are followed. */
export function pathExists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** Bytes between two looks at the free space of the disk, while a file of unknown size grows. */
export const LOOK_EVERY_BYTES = 16 * 1024 ** 2

/** Free bytes of the disk of a folder. Excludes the space reserved for root. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** What changes with every write of a file, and when another one takes its place. Costs no read. */
export function fileStamp({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs, ctimeNs].join('-')
}

/**
 * Gives a file that is whole on the disk its name, also on the disk: after a loss of power the name has the
 * old file or the new one, never a part.
 * @throws errors of the file system
 */
export function putInPlace(beside: string, path: string): Promise<void> {
  return nameOnDisk(path, () => rename(beside, path))
}

/**
 * Lets `name` give a file its name, and writes the name to the disk. The folder is opened first: without
 * descriptors the file has no name yet.
 * @throws errors of `name` and of the file system
 */
export async function nameOnDisk(path: string, name: () => Promise<void>): Promise<void> {
  const folder = await open(dirname(path), 'r')
  try {
    await name()
    // Some file systems cannot, and need not.
    await folder.sync().catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    })
  } finally {
    await folder.close()
  }
}

type Failure = NodeJS.ErrnoException | undefined

/** As makeFolderSync; rejects with its errors. */
export function makeFolder(path: string, mode?: number): Promise<void> {
  return Promise.resolve().then(() => makeFolderSync(path, mode))
}

/**
 * Makes a folder with those above it, level by level: Node's own recursive `mkdir` tries for ever where a
 * file system has no room for folders, such as /proc.
 * @param path absolute
 * @param mode of new folders. Default: what the umask leaves
 * @throws Error of the system
 */
export function makeFolderSync(path: string, mode = 0o777): void {
  let failure = tryMake(path, mode)
  if (isBelowNone(failure, path)) {
    makeFolderSync(dirname(path), mode)
    failure = tryMake(path, mode)
  }
  if (failure === undefined || statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  throw failure
}

function tryMake(path: string, mode: number): Failure {
  try {
    mkdirSync(path, { mode })
    return undefined
  } catch (error) {
    return error as Error
  }
}

function isBelowNone(failure: Failure, path: string): boolean {
  return failure?.code === 'ENOENT' && dirname(path) !== path
}

/** The removal that is last in the queue. */
let last: Promise<void> = Promise.resolve()

/**
 * Removes a folder and its content, after all other folders that are to be removed. The program `rm` does
 * it, so that no number of files blocks the event loop. Does not follow links. A missing folder is not an
 * error.
 * @throws Error that says in one line what is left and why
 */
export function removeFolder(folder: string): Promise<void> {
  const removed = last.then(() => remove(folder))
  last = removed.catch(() => undefined)
  return removed
}

async function remove(folder: string): Promise<void> {
  if (await removedByProgram(folder)) return
  try {
    await removeHere(folder)
  } catch (cause) {
    if (existsSync(folder)) throw new Error(leftBehind(folder, cause), { cause })
  }
}

/** Its name and not its path, because not every `rm` reaches a path that is longer than the system takes. */
async function removedByProgram(folder: string): Promise<boolean> {
  const options = { cwd: dirname(folder), env: process.env, stdio: 'ignore' } as const
  const { exitCode } = await startProgram('rm', ['-rf', '--', basename(folder)], options).ended
  return exitCode === 0
}

/**
 * For a system without `rm`, and to learn why it failed. Moves folders to the top before it empties them: the
 * paths of a deep tree are longer than the system takes.
 */
async function removeHere(top: string): Promise<void> {
  for (let isEmpty = false; !isEmpty;) {
    isEmpty = true
    for await (const entry of await opendir(top)) {
      isEmpty = false
      const path = join(top, entry.name)
      if (!entry.isDirectory()) {
        await unlink(path)
        continue
      }
      for await (const { name } of await opendir(path))
        await rename(join(path, name), join(top, randomUUID()))
      await rmdir(path)
    }
  }
  await rmdir(top)
}

/**
 * Removes a file or a folder with its content at once, for the end of a process. Never throws.
 * @param left is told what is left and why. Default: nobody, because the next start removes it
 */
export function removeSync(path: string, left?: (line: string) => void): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    left?.(leftBehind(path, error))
  }
}

function leftBehind(path: string, error: unknown): string {
  return `${path} is left behind: ${(error as Error).message}`
}
