import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'

/** Longest path that a Unix socket may have on Linux (macOS: 103), less the file name that follows. */
const MAX_DIR_BYTES = 103 - 24

/**
 * Makes a folder for worker sockets that only this user can enter (mkdtemp makes it 0700): below `tempDir`, or below the
 * system's /tmp when that path is too long for a socket.
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
