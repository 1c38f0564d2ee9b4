import { basename } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { readSigners } from './archive-signers.ts'
import { HashedFile, openFile } from './hashed-file.ts'
import { fingerprint, isGenuine, parseSignature, SIGNATURE_NAMESPACE } from './ssh-signature.ts'
import type { SshSignature } from './ssh-signature.ts'

/** Which file an archive is. */
export interface ArchiveIdentity {
  /** SHA-256 of the whole file, in lowercase hex. */
  readonly sha256: string
  /** Name of the key that signed it. Undefined: not signed, or signatures are not checked. */
  readonly signedBy?: string
}

/** What an archive must be. Plain data, because it goes to a thread. */
export interface ArchiveRules {
  /** The pin: the SHA-256 that it must have, in lowercase hex. Default: any. */
  readonly sha256?: string
  /** Default: signatures are not looked at. */
  readonly signatures?: SignatureRules
}

export interface SignatureRules {
  /** Absolute path: archive_signers_file. Read for each archive, so that a key can be revoked at any time. */
  readonly signersFile: string
  /** Whether an archive without a signature is refused (require_signed_archives). */
  readonly required: boolean
}

/** Ending of the signature file beside an archive, as ssh-keygen names it. */
export const SIGNATURE_ENDING = '.sig'
/** Many times an Ed25519 signature, which has about 320 bytes. */
export const MAX_SIGNATURE_BYTES = 16 * 1024

/**
 * Opens an archive, hashes it, and checks pin and signature, before anything reads its content.
 * @returns the file, which the caller closes
 * @throws ServeError UNTRUSTED_ARCHIVE for an archive that breaks a rule, INVALID_ARCHIVE when it is no file,
 *   CONFIG when the keys cannot be read; errors of the file system
 */
export async function identifyArchive(
  path: string,
  { sha256, signatures }: ArchiveRules,
): Promise<{ file: HashedFile; identity: ArchiveIdentity }> {
  const signature = signatures === undefined ? undefined : await readSignature(path, signatures)
  const file = await HashedFile.open(path, [
    'sha256',
    ...(signature?.hash === 'sha512' ? ['sha512' as const] : []),
  ])
  try {
    const found = file.digest('sha256').toString('hex')
    if (sha256 !== undefined && sha256 !== found) throw wrongHash(sha256, found)
    if (signature === undefined) return { file, identity: { sha256: found } }
    if (!isGenuine(signature, file.digest(signature.hash)))
      throw untrusted(`The archive or its signature was changed after it was signed.`)
    return { file, identity: { sha256: found, signedBy: await signerOf(signature, signatures!) } }
  } catch (error) {
    await file.close()
    throw error
  }
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

export function notSigned(name: string): ServeError {
  return untrusted(
    `The archive must be signed (require_signed_archives), but ${name}${SIGNATURE_ENDING} does not exist. ` +
      'Sign it with --sign of the archiver or with ssh-keygen.',
  )
}

/** The signature beside an archive; undefined: there is none, and none is required. */
async function readSignature(path: string, { required }: SignatureRules): Promise<SshSignature | undefined> {
  const text = await readSmall(`${path}${SIGNATURE_ENDING}`)
  if (text === undefined && required) throw notSigned(basename(path))
  if (text === undefined) return undefined
  let signature: SshSignature
  try {
    signature = parseSignature(text)
  } catch (error) {
    throw untrusted(`The signature of the archive is invalid: ${(error as Error).message}.`)
  }
  if (signature.namespace === SIGNATURE_NAMESPACE) return signature
  throw untrusted(`The signature must be for the namespace ${SIGNATURE_NAMESPACE} (ssh-keygen -n).`)
}

async function readSmall(path: string): Promise<string | undefined> {
  const handle = await openFile(path).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  })
  if (handle === undefined) return undefined
  try {
    if (!(await handle.stat()).isFile()) throw untrusted('The signature of the archive must be a file.')
    const { buffer, bytesRead } = await handle.read(
      Buffer.alloc(MAX_SIGNATURE_BYTES + 1),
      0,
      MAX_SIGNATURE_BYTES + 1,
      0,
    )
    if (bytesRead > MAX_SIGNATURE_BYTES)
      throw untrusted(`The signature of the archive must have at most ${MAX_SIGNATURE_BYTES} bytes.`)
    return buffer.toString('latin1', 0, bytesRead)
  } finally {
    await handle.close()
  }
}

async function signerOf({ key }: SshSignature, { signersFile }: SignatureRules): Promise<string> {
  const signer = (await readSigners(signersFile)).find((known) => known.key.equals(key))
  if (signer !== undefined) return signer.name
  throw untrusted(
    `The archive is signed with the key ${fingerprint(key)}, which is not in archive_signers_file.`,
  )
}
