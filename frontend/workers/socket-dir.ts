import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Maximum path length of a Unix socket on Linux (macOS: 103), less the file name. */
const MAX_DIR_BYTES = 103 - 24

/**
 * Creates a folder for worker sockets that only the server's user can enter (mkdtemp sets mode 0700). It is
 * below `tempDir`, or below /tmp if that path is too long for a socket.
 */
export function createSocketDir(tempDir: string): { path: string; remove: () => void } {
  mkdirSync(tempDir, { recursive: true })
  const parent = Buffer.byteLength(tempDir) > MAX_DIR_BYTES - 'ts-XXXXXX/'.length ? '/tmp' : tempDir
  const path = mkdtempSync(join(parent, 'ts-'))
  return {
    path,
    remove: () => {
      rmSync(path, { recursive: true, force: true })
    },
  }
}
