import { createHash } from 'node:crypto'
import { constants, createReadStream } from 'node:fs'
import { open, type FileHandle } from 'node:fs/promises'
import { ServeError } from '../common/errors.ts'

const DIGEST_BYTES = 32
const READ_BYTES = 1024 ** 2
const MIN_BLOCK_BYTES = 64 * 1024
/** Keeps the table of digests below 8 MiB, however large the file is. */
const MAX_BLOCKS = 2 ** 18
/** Enough for a directory and the headers that it points to, read in turns. */
const KEPT_BLOCKS = 8

// Read twice: nothing may be unpacked before the hash is known, and the file can change between.
// So the second reading compares each block with its digest from the first.

/**
 * A file that was opened once and hashed as a whole. Later reads return the hashed bytes or fail, so that
 * nobody can change the file between its check and its use.
 */
export class HashedFile {
  /** Bytes when it was opened; nothing behind them is hashed or read. */
  readonly size: number
  readonly #handle: FileHandle
  readonly #blockBytes: number
  /** The SHA-256 of each block, one after the other. */
  readonly #digests: Buffer
  #sha256 = ''
  /** The blocks read last, by position. */
  readonly #kept = new Map<number, Buffer>()

  private constructor(handle: FileHandle, size: number) {
    this.#handle = handle
    this.size = size
    this.#blockBytes = Math.max(MIN_BLOCK_BYTES, 2 ** Math.ceil(Math.log2(Math.max(1, size) / MAX_BLOCKS)))
    this.#digests = Buffer.alloc(Math.ceil(size / this.#blockBytes) * DIGEST_BYTES)
  }

  /**
   * Opens and hashes a file. The caller closes it.
   * @throws ServeError INVALID_ARCHIVE when it is no file or changes meanwhile; errors of the file system
   */
  static async open(path: string): Promise<HashedFile> {
    const handle = await openFile(path)
    try {
      const stats = await handle.stat()
      if (!stats.isFile()) throw new ServeError('INVALID_ARCHIVE', 'The archive must be a file.')
      const file = new HashedFile(handle, stats.size)
      await file.#hash()
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
    const block = this.#blockBytes
    for (let at = start; at < end;) {
      const first = at - (at % block)
      const chunk = await this.#blocks(first, Math.min(end, first + Math.max(READ_BYTES, block)))
      const part = chunk.subarray(at - first, end - first)
      at += part.length
      yield part
    }
  }

  close(): Promise<void> {
    return this.#handle.close()
  }

  async #hash(): Promise<void> {
    const hash = createHash('sha256')
    const step = Math.max(READ_BYTES, this.#blockBytes)
    for (let at = 0; at < this.size; at += step) {
      const chunk = await this.#raw(at, Math.min(step, this.size - at))
      hash.update(chunk)
      for (let offset = 0; offset < chunk.length; offset += this.#blockBytes)
        this.#digestAt(at + offset).set(sha256(chunk.subarray(offset, offset + this.#blockBytes)))
    }
    this.#sha256 = hash.digest('hex')
  }

  /** The whole blocks from `start`, the start of one, to the one that contains the byte before `end`. */
  async #blocks(start: number, end: number): Promise<Buffer> {
    const kept = end - start <= this.#blockBytes ? this.#kept.get(start) : undefined
    if (kept !== undefined) return kept
    const length = Math.ceil((end - start) / this.#blockBytes) * this.#blockBytes
    const chunk = await this.#raw(start, Math.min(length, this.size - start))
    for (let at = 0; at < chunk.length; at += this.#blockBytes) {
      const block = chunk.subarray(at, at + this.#blockBytes)
      if (!this.#digestAt(start + at).equals(sha256(block))) throw changed()
    }
    if (length === this.#blockBytes) this.#keep(start, chunk)
    return chunk
  }

  #keep(at: number, block: Buffer): void {
    this.#kept.set(at, block)
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= KEPT_BLOCKS) break
      this.#kept.delete(oldest)
    }
  }

  #digestAt(position: number): Buffer {
    const index = position / this.#blockBytes
    return this.#digests.subarray(index * DIGEST_BYTES, (index + 1) * DIGEST_BYTES)
  }

  async #raw(position: number, length: number): Promise<Buffer> {
    const chunk = Buffer.allocUnsafe(length)
    for (let done = 0; done < length;) {
      const { bytesRead } = await this.#handle.read(chunk, done, length - done, position + done)
      if (bytesRead === 0) throw changed()
      done += bytesRead
    }
    return chunk
  }
}

/** Opens a file to read. Without waiting for a writer, if the path turns out to be a pipe. */
function openFile(path: string): Promise<FileHandle> {
  return open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest()
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
