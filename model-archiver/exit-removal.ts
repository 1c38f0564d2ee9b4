import { randomBytes } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const doomed = new Set<string>()
let watching = false

/**
 * Sees that a file or folder does not outlive this process, however the process is told to exit. (One that is killed removes nothing:
 * the next start sweeps.)
 * @returns what takes that back, once somebody else has removed it or it shall stay
 */
export function removeAtExit(path: string): () => void {
  if (!watching) process.once('exit', removeAll)
  watching = true
  doomed.add(path)
  return () => void doomed.delete(path)
}

/** Under another name first: a thread that still writes below the old one finds nothing there any more. */
function removeAll(): void {
  for (const path of doomed) {
    const aside = join(dirname(path), randomBytes(16).toString('hex'))
    try {
      renameSync(path, aside)
      rmSync(aside, { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // It is gone, or cannot be removed; nobody is left to be told.
    }
  }
}
