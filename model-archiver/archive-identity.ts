import { ServeError } from '../common/errors.ts'
import { HashedFile } from './hashed-file.ts'

/** Which file an archive is. */
export interface ArchiveIdentity {
  /** SHA-256 of the whole file, in lowercase hex. */
  readonly sha256: string
}

/**
 * Opens an archive, hashes it, and checks its pin, before anything reads its content.
 * @param pin the SHA-256 that it must have, in lowercase hex; undefined: any
 * @returns the file, which the caller closes
 * @throws ServeError UNTRUSTED_ARCHIVE for an archive with another hash, INVALID_ARCHIVE when it is no file;
 *   errors of the file system
 */
export async function identifyArchive(
  path: string,
  pin: string | undefined,
): Promise<{ file: HashedFile; identity: ArchiveIdentity }> {
  const file = await HashedFile.open(path)
  const { sha256 } = file
  if (pin === undefined || pin === sha256) return { file, identity: { sha256 } }
  await file.close()
  throw wrongHash(pin, sha256)
}

/** The error for an archive that the operator's rules do not allow. */
export function untrusted(message: string): ServeError {
  return new ServeError('UNTRUSTED_ARCHIVE', message)
}

export function wrongHash(pinned: string, found: string): ServeError {
  return untrusted(
    `The archive must have the SHA-256 ${pinned}, but has ${found}. If you trust it, change the pin.`,
  )
}
