import { statfs } from 'node:fs/promises'

/** Bytes between two looks at the free space of the disk, while a file of unknown size grows. */
export const LOOK_EVERY_BYTES = 16 * 1024 ** 2

/** Free bytes of the disk of a folder. Excludes the space reserved for root. */
export async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}
