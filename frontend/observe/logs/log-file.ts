import { closeSync, fchmodSync, fstatSync, openSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolderSync } from '../../../common/files.ts'
import { Appender, type AppenderOptions } from './appender.ts'
import { compress, endOfDay, leftAside, prune, setAside } from './roll.ts'

/** Logs hold clients' addresses and what handlers print: only owner and group may read them. */
const LOG_MODE = 0o640

export interface LogFileOptions extends AppenderOptions {
  /** File size in bytes that rolls the file. Default 100 MB, as in TorchServe. */
  maxBytes?: number
  /** Bytes that rolled files may have; the oldest are removed first. Default 1 GiB. */
  keepBytes?: number
}

const MAX_BYTES = 100 * 1024 * 1024
const KEEP_BYTES = 1024 ** 3
/** Milliseconds after which a write that failed is tried again. */
const RETRY_MS = 1_000

/**
 * A log file. At 100 MB and at midnight it is rolled and compressed. A file that was moved or deleted is
 * opened again before the next write. While the disk is full, lines wait in memory.
 */
export class LogFile extends Appender {
  readonly #path: string
  readonly #maxBytes: number
  readonly #keepBytes: number
  /** The local day of its lines, and its end, in milliseconds since the epoch. */
  #day = 0
  #dayEnd = 0
  /** Its size when it could not be rolled: from there it may grow by the limit again. */
  #grewFrom = 0
  #compressing = Promise.resolve()

  /** Opens the file; makes its folder if needed. @throws errors of the file system */
  constructor(path: string, options: LogFileOptions) {
    super(openLog(path), 'the disk is too slow', options)
    this.#path = path
    this.#maxBytes = options.maxBytes ?? MAX_BYTES
    this.#keepBytes = options.keepBytes ?? KEEP_BYTES
    this.#use(this.fd)
    if (leftAside(path).length > 0) this.#compress()
  }

  /** Opens the file by its name again, because another program moves log files. */
  reopen(): void {
    // While a write runs, the next one finds out whether the file was moved.
    if (!this.isBusy) this.#replace()
  }

  /** Writes waiting lines, closes the file, and waits until rolled files are compressed. */
  override async end(): Promise<void> {
    await super.end()
    await this.#compressing
  }

  protected override prepare(bytes: number | undefined): void {
    const own = fstatSync(this.fd)
    if (this.#isReplaced(own)) this.#replace()
    else if (bytes !== undefined && own.size > 0) {
      this.#grewFrom = Math.min(this.#grewFrom, own.size) // somebody may have truncated it
      const grown = own.size - this.#grewFrom
      const isFull = grown > 0 && grown + bytes > this.#maxBytes
      if (isFull || Date.now() >= this.#dayEnd) this.#roll(own.size)
    }
  }

  protected override retryAfter(error: Error): number {
    this.#warn(error)
    return RETRY_MS
  }

  protected override closed(): void {
    closeSync(this.fd)
  }

  /** Whether another file, or none, has the name of this one. */
  #isReplaced(own: Stats): boolean {
    try {
      const found = statSync(this.#path, { throwIfNoEntry: false })
      return found?.ino !== own.ino || found.dev !== own.dev
    } catch {
      return false // nobody can tell
    }
  }

  #replace(): void {
    try {
      const before = this.fd
      this.#use(openLog(this.#path))
      closeSync(before)
    } catch (error) {
      this.#warn(error as Error)
    }
  }

  #roll(size: number): void {
    try {
      setAside(this.#path, this.#day)
      const before = this.fd
      this.#use(openLog(this.#path))
      closeSync(before)
      this.#prune()
      this.#compress()
    } catch (error) {
      // Continue in the old file.
      this.#grewFrom = size
      this.#dayEnd = endOfDay(Date.now())
      this.#warn(error as Error)
    }
  }

  /** Takes the existing file's time, so that the first write rolls a file of an earlier day. */
  #use(fd: number): void {
    const { size, mtimeMs } = fstatSync(fd)
    this.fd = fd
    this.#day = size === 0 ? Date.now() : mtimeMs
    this.#dayEnd = endOfDay(this.#day)
    this.#grewFrom = 0
  }

  /**
   * Compresses what is put aside, one file at a time, so that a busy log does not occupy every core; also
   * files of which it failed before, because the disk was full.
   */
  #compress(): void {
    this.#compressing = this.#compressing
      .then(async () => {
        for (const aside of leftAside(this.#path)) await compress(aside)
      })
      .catch((error: unknown) => this.#warn(error as Error))
      .then(() => this.#prune())
  }

  /** Before compressing too: a busy log fills files faster than they can be compressed. */
  #prune(): void {
    try {
      prune(this.#path, this.#keepBytes)
    } catch (error) {
      this.#warn(error as Error)
    }
  }

  #warn({ message }: Error): void {
    this.warnOf(`${this.#path} cannot be written: ${message}`)
  }
}

/** Closes a file to others: they could read the files of earlier versions. */
function openLog(path: string): number {
  makeFolderSync(dirname(path))
  const fd = openSync(path, 'a', LOG_MODE)
  const stats = fstatSync(fd)
  try {
    // A pipe or a terminal stays unchanged.
    if ((stats.mode & 0o007) !== 0 && stats.isFile()) fchmodSync(fd, stats.mode & 0o770)
  } catch {
    // another user's file
  }
  return fd
}
