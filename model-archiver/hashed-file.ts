import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { ServeError } from '../common/errors.ts'

const READ_BYTES = 1024 ** 2

/**
 * A file that was opened once and hashed as a whole. Later reads fail when the file was written after it was
 * opened, so that nobody can change it between its check and its use.
 */
export class HashedFile {
  /** Bytes when it was opened; nothing behind them is hashed or read. */
  readonly size: number
  readonly #handle: FileHandle
  /** When its content or attributes last changed, in nanoseconds. No program can set this time. */
  readonly #changedAt: bigint
  #sha256 = ''

  private constructor(handle: FileHandle, size: number, changedAt: bigint) {
    this.#handle = handle
    this.size = size
    this.#changedAt = changedAt
  }

  /**
   * Opens and hashes a file. The caller closes it.
   * @throws ServeError INVALID_ARCHIVE when it is no file or changes meanwhile; errors of the file system
   */
  static async open(path: string): Promise<HashedFile> {
    const handle = await openFile(path)
    try {
      const stats = await handle.stat({ bigint: true })
      if (!stats.isFile()) throw new ServeError('INVALID_ARCHIVE', 'The archive must be a file.')
      const file = new HashedFile(handle, Number(stats.size), stats.ctimeNs)
      const hash = createHash('sha256')
      for await (const chunk of file.read()) hash.update(chunk)
      file.#sha256 = hash.digest('hex')
      return file
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  /** The SHA-256 of the whole file, in lowercase hex. */
  get sha256(): string {
    return this.#sha256
  }

  /** The bytes from `start` to before `end`. @throws ServeError INVALID_ARCHIVE when the file has changed */
  async *read(start = 0, end = this.size): AsyncGenerator<Buffer, void> {
    if (start < 0 || end > this.size) throw new Error('unexpected end of the file')
    for (let at = start; at < end;) {
      const chunk = Buffer.allocUnsafe(Math.min(READ_BYTES, end - at))
      const { bytesRead } = await this.#handle.read(chunk, 0, chunk.length, at)
      const { ctimeNs } = await this.#handle.stat({ bigint: true })
      if (bytesRead === 0 || ctimeNs !== this.#changedAt) throw changed()
      at += bytesRead
      yield chunk.subarray(0, bytesRead)
    }
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}

/** Opens a file to read. Without waiting for a writer, if the path turns out to be a pipe. */
function openFile(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
}

function changed(): ServeError {
  return new ServeError('INVALID_ARCHIVE', 'The archive was changed while it was read. Try again.')
}

/** The SHA-256 of a file's content in lowercase hex. @throws errors of the file system */
export async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  for await (const chunk of createReadStream(path, { highWaterMark: 1024 ** 2 })) hash.update(chunk as Buffer)
  return hash.digest('hex')
}

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
