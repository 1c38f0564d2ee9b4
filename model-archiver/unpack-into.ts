import { open, statfs } from 'node:fs/promises'
import { ServeError } from '../common/errors.ts'
import { UnpackBudget } from './unpack-budget.ts'
import type { UnpackLimits } from './unpack-limits.ts'

/** One archive to unpack. `limits` excludes the timeout, which the caller watches. */
export interface UnpackTask {
  /** Absolute path. */
  readonly archive: string
  /** Absolute path of an existing, empty folder. */
  readonly folder: string
  readonly limits: UnpackLimits
}

/**
 * Unpacks an archive into a folder, in the calling thread. Untrusted archives need unpack-thread.ts.
 * @throws ServeError INVALID_ARCHIVE for an archive that is invalid, unsafe or over the limits; INTERNAL for
 *   errors of the disk
 */
export async function unpackInto({ archive, folder, limits }: UnpackTask): Promise<void> {
  try {
    const { format, size } = await inspect(archive)
    const budget = new UnpackBudget(limits, size, () => freeBytes(folder))
    if (format === 'zip') await (await import('./unpack-zip.ts')).unpackZip(archive, folder, budget)
    else await (await import('./unpack-tar.ts')).unpackTar(archive, folder, budget)
  } catch (error) {
    throw asArchiveError(error)
  }
}

async function inspect(archive: string): Promise<{ format: 'zip' | 'tgz'; size: number }> {
  const file = await open(archive, 'r')
  try {
    const { size } = await file.stat()
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const magic = buffer.subarray(0, bytesRead)
    if (magic.length === 4 && magic.toString('latin1', 0, 2) === 'PK') return { format: 'zip', size }
    if (magic[0] === 0x1f && magic[1] === 0x8b) return { format: 'tgz', size }
  } finally {
    await file.close()
  }
  throw new ServeError('INVALID_ARCHIVE', 'The archive must be a zip (.mar) or a compressed tar (.tar.gz).')
}

/** Excludes the space reserved for root. */
async function freeBytes(folder: string): Promise<number> {
  const { bavail, bsize } = await statfs(folder)
  return bavail * bsize
}

/** Errors of the disk are kept; all others mean that the archive is invalid. */
export function asArchiveError(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message, syscall } = error as NodeJS.ErrnoException
  const text = syscall === undefined ? 'The archive is invalid' : 'The archive could not be unpacked'
  return new ServeError(syscall === undefined ? 'INVALID_ARCHIVE' : 'INTERNAL', `${text}: ${message}`, {
    cause: error,
  })
}
