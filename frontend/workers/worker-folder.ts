import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { makeFolderSync } from '../../common/make-folder.ts'
import { claimFolder } from '../../model-archiver/owner-file.ts'

/**
 * Makes the folder of one start of a worker: its socket, and the files of torchrun. Other workers cannot list
 * the folder above it and would have to guess 60 bits of its name.
 */
export function createWorkerFolder(socketDir: string): string {
  const folder = join(socketDir, randomBytes(7).toString('base64url'))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    // What removes old temporary files took the folder above. One that somebody else has made is refused.
    makeFolderSync(dirname(socketDir))
    mkdirSync(socketDir, { mode: 0o700 })
    claimFolder(socketDir)
    mkdirSync(folder, { mode: 0o700 })
  }
  return folder
}

/** Removes it with everything that the worker left. Never rejects. */
export async function removeWorkerFolder(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined)
}
