import { randomBytes } from 'node:crypto'
import { mkdir, rename } from 'node:fs/promises'
import { removeFolder } from './remove-folder.ts'
import { asArchiveError, type UnpackTask } from './unpack-into.ts'
import { DEFAULT_UNPACK_LIMITS, type UnpackLimits } from './unpack-limits.ts'
import { unpackInThread } from './unpack-thread.ts'

export interface UnpackOptions {
  /** Those that are missing have their defaults. */
  readonly limits?: Partial<UnpackLimits>
  /** Calls it off. */
  readonly signal?: AbortSignal
  /** Who does the work. Default: a thread of its own; `unpackInto` does it in this one. */
  readonly unpack?: (task: UnpackTask, signal?: AbortSignal) => Promise<void>
}

/**
 * Unpacks a model archive (.mar: zip; .tar.gz, .tgz: compressed tar; told apart by content, not by name) so that `target` is either
 * there whole or not at all: it unpacks into a folder beside it and renames. A thread of its own does the work.
 * @param target must not exist; the folder above it must
 * @throws ServeError INVALID_ARCHIVE for an archive that is broken, unsafe or over the limits, SHUTTING_DOWN when it is called off
 */
export async function unpackArchive(
  archive: string,
  target: string,
  { limits, signal, unpack = unpackInThread }: UnpackOptions = {},
): Promise<void> {
  const beside = `${target}.${randomBytes(8).toString('hex')}.part`
  await mkdir(beside, { mode: 0o755 })
  try {
    const task = { archive, folder: beside, limits: { ...DEFAULT_UNPACK_LIMITS, ...limits } }
    await unpack(task, signal)
    await rename(beside, target)
  } catch (error) {
    await removeFolder(beside)
    throw asArchiveError(error)
  }
}
