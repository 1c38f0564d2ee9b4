import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

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
