import { access, statfs, open, rename } from 'node:fs/promises'
import type { BigIntStats } from 'node:fs'
import { dirname } from 'node:path'

/** Whether there is anything at a path. Links are followed. */
export function pathExists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

/** Bytes between two looks at the free space of the disk, while a file of unknown size grows. */
export const LOOK_EVERY_BYTES = 16 * 1024 ** 2

/** Free bytes of the disk of a folder. Excludes the space reserved for root. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** What changes with every write of a file, and when another one takes its place. Costs no read. */
export function fileStamp({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs, ctimeNs].join('-')
}

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
