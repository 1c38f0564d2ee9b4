import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { ServeError } from '../../common/errors.ts'
import { makeFolderSync, removeSync } from '../../common/files.ts'

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
