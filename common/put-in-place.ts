import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Gives a file that is whole on the disk its name, also on the disk: after a loss of power the name has the
 * old file or the new one, never a part.
 * @throws errors of the file system
 */
export async function putInPlace(beside: string, path: string): Promise<void> {
  await rename(beside, path)
  await syncFolder(dirname(path))
}

/** Writes the names of a folder to the disk. @throws errors of the file system */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } catch (error) {
    // Some file systems cannot, and need not.
    if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
  } finally {
    await folder.close()
  }
}
