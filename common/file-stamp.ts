import type { BigIntStats } from 'node:fs'

/** What changes with every write of a file, and when another one takes its place. Costs no read. */
export function fileStamp({ ino, size, mtimeNs, ctimeNs }: BigIntStats): string {
  return [ino, size, mtimeNs, ctimeNs].join('-')
}
