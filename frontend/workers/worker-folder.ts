import { randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolderSync, removeFolder, removeSync } from '../../common/files.ts'
import { claimFolder } from '../../model-archiver/owner-file.ts'
import type { LaunchContext } from './launch.ts'
import { ServeError } from '../../common/errors.ts'

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

/** Maximum path length of a Unix socket on Linux (macOS: 103), less the file name. */
const MAX_DIR_BYTES = 103 - 24

export interface SocketDir {
  readonly path: string
  /** Removes it; see `removeSync`. */
  remove(left: (line: string) => void): void
}

/**
 * Creates a folder for worker sockets that only the server's user can enter (mkdtemp sets mode 0700). It is
 * below `tempDir`, or below /tmp if that path is too long for a socket.
 * @throws ServeError CONFIG when `tempDir` cannot be made; errors of the file system
 */
export function createSocketDir(tempDir: string): SocketDir {
  makeTempDir(tempDir)
  const parent = Buffer.byteLength(tempDir) > MAX_DIR_BYTES - 'ts-XXXXXX/'.length ? '/tmp' : tempDir
  const path = mkdtempSync(join(parent, 'ts-'))
  return { path, remove: (left) => removeSync(path, left) }
}

function makeTempDir(path: string): void {
  try {
    makeFolderSync(path)
  } catch (cause) {
    const why = (cause as Error).message
    const message = `The temporary folder ${path} must be a folder that can be made: set TEMP to another one (${why})`
    throw new ServeError('CONFIG', message, { cause })
  }
}
