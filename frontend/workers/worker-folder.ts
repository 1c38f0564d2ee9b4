import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolderSync, removeFolder } from '../../common/files.ts'
import { claimFolder } from '../../model-archiver/owner-file.ts'
import type { LaunchContext } from './launch.ts'

/** The folder of one start of a worker. */
export interface WorkerFolder {
  readonly path: string
  /** Removes it with everything that the worker left, in the background. What cannot be removed is logged. */
  cleanUp(): void
}

/**
 * Makes the folder of one start of a worker: its socket, and the files of torchrun. Other workers cannot list
 * the folder above it and would have to guess 60 bits of its name.
 */
export function createWorkerFolder({ socketDir, warn }: LaunchContext): WorkerFolder {
  const path = join(socketDir, randomBytes(7).toString('base64url'))
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // What removes old temporary files took the folder above. One that somebody else has made is refused.
    makeFolderSync(dirname(socketDir))
    mkdirSync(socketDir, { mode: 0o700 })
    claimFolder(socketDir)
    mkdirSync(path, { mode: 0o700 })
  }
  const cleanUp = (): void =>
    void removeFolder(path).catch((error: unknown) => warn((error as Error).message))
  return { path, cleanUp }
}
