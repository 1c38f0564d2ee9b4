import { randomBytes } from 'node:crypto'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { ServeError } from '../common/errors.ts'
import { DEFAULT_UNPACK_LIMITS, type UnpackLimits } from './entry-guard.ts'

/**
 * Unpacks a model archive (.mar: zip; .tar.gz, .tgz: compressed tar; told apart by content, not by name) so that `target` is either
 * there whole or not at all: it unpacks into a folder beside it and renames.
 * @param target must not exist; the folder above it must
 * @throws ServeError INVALID_ARCHIVE for an archive that is broken, unsafe or over the limits
 */
export async function unpackArchive(
  archive: string,
  target: string,
  limits: Partial<UnpackLimits> = {},
): Promise<void> {
  const beside = `${target}.${randomBytes(8).toString('hex')}.part`
  await mkdir(beside, { mode: 0o755 })
  try {
    await unpackInto(archive, beside, { ...DEFAULT_UNPACK_LIMITS, ...limits })
    await rename(beside, target)
  } catch (error) {
    await rm(beside, { recursive: true, force: true })
    throw asArchiveError(error)
  }
}

/** The libraries are loaded when the first archive comes: a server of folders starts faster without them. */
async function unpackInto(archive: string, folder: string, limits: UnpackLimits): Promise<void> {
  const format = await formatOf(archive)
  if (format === 'zip') await (await import('./unpack-zip.ts')).unpackZip(archive, folder, limits)
  else await (await import('./unpack-tar.ts')).unpackTar(archive, folder, limits)
}

async function formatOf(archive: string): Promise<'zip' | 'tgz'> {
  const file = await open(archive, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    const magic = buffer.subarray(0, bytesRead)
    if (magic.length === 4 && magic.toString('latin1', 0, 2) === 'PK') return 'zip'
    if (magic[0] === 0x1f && magic[1] === 0x8b) return 'tgz'
  } finally {
    await file.close()
  }
  throw new ServeError(
    'INVALID_ARCHIVE',
    'The archive is neither a zip (.mar) nor a compressed tar (.tar.gz).',
  )
}

/** Errors of the disk stay what they are; everything else means that the archive is broken. */
function asArchiveError(error: unknown): ServeError {
  if (error instanceof ServeError) return error
  const { message, syscall } = error as NodeJS.ErrnoException
  const text = syscall === undefined ? 'The archive is broken' : 'The archive could not be unpacked'
  return new ServeError(syscall === undefined ? 'INVALID_ARCHIVE' : 'INTERNAL', `${text}: ${message}`, {
    cause: error,
  })
}
