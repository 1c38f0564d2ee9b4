import { randomBytes } from 'node:crypto'
import { renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'

const doomed = new Set<string>()
let watching = false

/**
 * Removes a file or folder when this process exits for any reason but a kill, after which the next start
 * removes it.
 * @returns a function that cancels this, for a path that was removed or must stay
 */
export function removeAtExit(path: string): () => void {
  if (!watching) process.once('exit', removeAll)
  watching = true
  doomed.add(path)
  return () => void doomed.delete(path)
}

/** Renamed first, so that a thread that still writes cannot recreate files below the old name. */
function removeAll(): void {
  for (const path of doomed) {
    const aside = join(dirname(path), randomBytes(16).toString('hex'))
    try {
      renameSync(path, aside)
      rmSync(aside, { recursive: true, force: true, maxRetries: 3 })
    } catch {
      // Already removed, or not removable; no way left to report it.
    }
  }
}
