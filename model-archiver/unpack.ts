import { randomBytes } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import type { ArchiveIdentity } from './hashed-file.ts'
import { removeFolder } from '../common/files.ts'
import { asArchiveError, type UnpackTask } from './unpack-into.ts'
import { DEFAULT_UNPACK_LIMITS, type UnpackLimits } from './unpack-budget.ts'
import { UnpackThreads } from './unpack-thread.ts'

const threads = new UnpackThreads()

export interface UnpackOptions {
  /** Missing limits have their defaults. */
  readonly limits?: Partial<UnpackLimits>
  /** The pin: the SHA-256 that the archive must have, in lowercase hex. Default: any. */
  readonly sha256?: string
  /** Cancels unpacking. */
  readonly signal?: AbortSignal
  /** Default: a separate thread; `unpackInto` unpacks in the calling one. */
  readonly unpack?: (task: UnpackTask, signal?: AbortSignal) => Promise<ArchiveIdentity>
}

/**
 * Unpacks a model archive into `target` atomically, in a separate thread. Detects the format by content: zip
 * (.mar) or compressed tar (.tar.gz, .tgz).
 * @param target must not exist; its parent folder must
 * @returns which file it was
 * @throws ServeError UNTRUSTED_ARCHIVE for an archive without its pin, INVALID_ARCHIVE for one that is
 *   invalid, unsafe or over the limits, CONFIG, SHUTTING_DOWN when cancelled
 */
export async function unpackArchive(
  archive: string,
  target: string,
  { limits, sha256, signal, unpack = inThread }: UnpackOptions = {},
): Promise<ArchiveIdentity> {
  const beside = `${target}.${randomBytes(8).toString('hex')}.part`
  await mkdir(beside, { mode: 0o755 })
  try {
    const task = { archive, folder: beside, limits: { ...DEFAULT_UNPACK_LIMITS, ...limits }, sha256 }
    const identity = await unpack(task, signal)
    await rename(beside, target)
    return identity
  } catch (error) {
    await removeFolder(beside)
    throw asArchiveError(error)
  }
}

function inThread(task: UnpackTask, signal?: AbortSignal): Promise<ArchiveIdentity> {
  return threads.unpack(task, signal)
}
