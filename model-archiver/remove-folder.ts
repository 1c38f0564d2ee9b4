import { opendir, rm, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Removes a folder with everything in it, one file after the other: `rm` of ten thousand files, which it removes all at once, holds up the
 * event loop for a third of a second. Links are removed, not followed. What is not there is removed already.
 */
export async function removeFolder(folder: string): Promise<void> {
  await removeInTurn(folder).catch(() => undefined)
  // What the walk could not remove, with the reason, or what came while it went on.
  await rm(folder, { recursive: true, force: true, maxRetries: 3 })
}

async function removeInTurn(folder: string): Promise<void> {
  for await (const entry of await opendir(folder)) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) await removeInTurn(path)
    else await unlink(path)
  }
  await rmdir(folder)
}
