import { mkdirSync, statSync } from 'node:fs'
import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

type Failure = NodeJS.ErrnoException | undefined

/**
 * Makes a folder with those above it, level by level: Node's own recursive `mkdir` tries for ever where a
 * file system has no room for folders, such as /proc.
 * @param path absolute
 * @param mode of new folders. Default: what the umask leaves
 * @throws Error of the system
 */
export async function makeFolder(path: string, mode = 0o777): Promise<void> {
  const make = (): Promise<Failure> =>
    mkdir(path, { mode }).then(
      () => undefined,
      (error: unknown) => error as Error,
    )
  let failure = await make()
  if (isBelowNone(failure, path)) {
    await makeFolder(dirname(path), mode)
    failure = await make()
  }
  if (failure === undefined || (await stat(path).catch(() => undefined))?.isDirectory()) return
  throw failure
}

/** The same, synchronously. */
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
