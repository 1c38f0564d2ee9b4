import { open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Gives a file that is whole on the disk its name, also on the disk: after a loss of power the name has the
 * old file or the new one, never a part.
 * @throws errors of the file system
 */
export function putInPlace(beside: string, path: string): Promise<void> {
  return nameOnDisk(path, () => rename(beside, path))
}

/**
 * Lets `name` give a file its name, and writes the name to the disk. The folder is opened first: without
 * descriptors the file has no name yet.
 * @throws errors of `name` and of the file system
 */
export async function nameOnDisk(path: string, name: () => Promise<void>): Promise<void> {
  const folder = await open(dirname(path), 'r')
  try {
    await name()
    // Some file systems cannot, and need not.
    await folder.sync().catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'EINVAL') throw error
    })
  } finally {
    await folder.close()
  }
}
