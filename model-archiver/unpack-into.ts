import { ServeError } from '../common/errors.ts'
import { freeBytes } from '../common/files.ts'
import { type ArchiveIdentity, identifyArchive, type HashedFile } from './hashed-file.ts'
import { UnpackBudget, type UnpackLimits } from './unpack-budget.ts'

/** One archive to unpack. `limits` excludes the timeout, which the caller watches. */
export interface UnpackTask {
  /** Absolute path. */
  readonly archive: string
  /** Absolute path of an existing, empty folder. */
  readonly folder: string
  readonly limits: UnpackLimits
  /** The pin, in lowercase hex, checked before anything is unpacked. Default: any archive is right. */
  readonly sha256?: string
}

/**
 * Checks the pin of an archive and unpacks it into a folder, in the calling thread. Untrusted archives
 * need unpack-thread.ts.
 * @throws ServeError UNTRUSTED_ARCHIVE for an archive without its pin; INVALID_ARCHIVE for one that is
 *   invalid, unsafe or over the limits; CONFIG, INTERNAL for errors of the disk
 */
export async function unpackInto({ archive, folder, limits, sha256 }: UnpackTask): Promise<ArchiveIdentity> {
  try {
    const { file, identity } = await identifyArchive(archive, sha256)
    try {
      const budget = new UnpackBudget(limits, file.size, () => freeBytes(folder))
      if ((await formatOf(file)) === 'zip')
        await (await import('./unpack-zip.ts')).unpackZip(file, folder, budget)
      else await (await import('./unpack-tar.ts')).unpackTar(file, folder, budget)
      return identity
    } finally {
      await file.close()
    }
  } catch (error) {
    throw asArchiveError(error)
  }
}

async function formatOf(file: HashedFile): Promise<'zip' | 'tgz'> {
  for await (const magic of file.read(0, Math.min(4, file.size))) {
    if (magic.length === 4 && magic.toString('latin1', 0, 2) === 'PK') return 'zip'
    if (magic[0] === 0x1f && magic[1] === 0x8b) return 'tgz'
  }
  throw new ServeError('INVALID_ARCHIVE', 'The archive must be a zip (.mar) or a compressed tar (.tar.gz).')
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
