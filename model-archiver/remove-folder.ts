import { opendir, rm, rmdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Removes a folder and its content, one file after the other: `rm` removes files concurrently, and ten
 * thousand of them block the event loop for a third of a second. Does not follow links. A missing folder is
 * not an error.
 */
export async function removeFolder(folder: string): Promise<void> {
  await removeInTurn(folder).catch(() => undefined)
  // Removes what appeared meanwhile, or rejects with the reason for what cannot be removed.
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
