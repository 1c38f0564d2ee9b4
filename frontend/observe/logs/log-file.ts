import { closeSync, fchmodSync, fstatSync, openSync, statSync, write, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { Allowance } from '../../../common/byte-flow.ts'
import { makeFolderSync } from '../../../common/files.ts'
import { startTimer } from '../../../common/timer.ts'
import { endOfDay, localTime } from './clock.ts'
import { compress, leftAside, prune, setAside } from './roll.ts'

/** Logs hold clients' addresses and what handlers print: only owner and group may read them. */
export const LOG_MODE = 0o640

/** Takes lines, each with its line end. */
export interface LineWriter {
  write(line: string): void
}

export interface LogFileOptions {
  /** File size in bytes that rolls the file. Default 100 MB, as in TorchServe. */
  maxBytes?: number
  /** Bytes that rolled files may have; the oldest are removed first. Default 1 GiB. */
  keepBytes?: number
  /** Maximum characters waiting for the disk; further lines are lost and counted. Default 8 Mi. */
  maxWaiting?: number
  /** The line that reports lost lines, with its line end. Default: one of the server's log. */
  droppedLine?: (count: number, why: string) => string
  /** Called when the file cannot be written, at most once a minute for the same reason. */
  warn: (message: string) => void
}

const MAX_BYTES = 100 * 1024 * 1024
const KEEP_BYTES = 1024 ** 3
const MAX_WAITING = 8 * 1024 * 1024
/** A busy log writes once per pause, in milliseconds; a quiet one line by line. */
const PAUSE_MS = 50
const BURST = 20
/** Characters that are worth a write of their own. */
const FULL = 131_072
const WARN_PAUSE_MS = 60_000
/** Milliseconds after which a write that failed is tried again. */
const RETRY_MS = 1_000

/**
 * A log file with asynchronous writes. A quiet log writes in the same turn of the event loop, so that the
 * line is there when the client reads the file after its answer; a busy one writes every 50 ms. Lines wait in
 * memory, up to a limit, while a write runs or the disk is full. At 100 MB and at midnight the file is rolled
 * and compressed. A file that was moved or deleted is opened again before the next write.
 */
export class LogFile implements LineWriter {
  readonly #path: string
  readonly #options: Required<LogFileOptions>
  #fd: number
  #size = 0
  #day = 0
  #waiting = ''
  #lost = 0
  /** Lost lines that the file has not reported yet. */
  #untold = 0
  #why = ''
  /** Why the last write failed, until one succeeds. */
  #failure: string | undefined
  #writing = false
  /** What a failed write has left, while it waits to be tried again. */
  #rest: Buffer | undefined
  readonly #writes = new Allowance(PAUSE_MS, BURST)
  #timer: NodeJS.Timeout | undefined
  /** A write is scheduled for the end of the current turn. */
  #due = false
  /** Descriptors of moved files that a write still uses. */
  readonly #leaving: number[] = []
  #lastWarning = -Infinity
  #warned = ''
  #compressing = Promise.resolve()
  #onIdle: (() => void) | undefined

  /** Opens the file; makes its folder if needed. @throws errors of the file system */
  constructor(path: string, options: LogFileOptions) {
    this.#path = path
    const limits = { maxBytes: MAX_BYTES, keepBytes: KEEP_BYTES, maxWaiting: MAX_WAITING }
    this.#options = { ...limits, droppedLine, ...options }
    makeFolderSync(dirname(path))
    this.#fd = this.#open()
    if (leftAside(path).length > 0) this.#compress()
    process.once('exit', this.endNow)
  }

  /** Lines that are in no file, because the disk was too slow, or full for too long. */
  get lost(): number {
    return this.#lost
  }

  write(line: string): void {
    if (this.#waiting.length + line.length > this.#options.maxWaiting) {
      this.#lost += 1
      this.#untold += 1
      this.#why = this.#failure ?? 'the disk is too slow'
      return
    }
    this.#waiting += line
    if (this.#waiting.length >= FULL && !this.#writing) this.#flush()
    if (this.#timer === undefined && !this.#due && !this.#writing) this.#writeSoon()
  }

  /** Opens the file by its name again, because another program moves log files. */
  reopen(): void {
    if (this.#fd === -1) return
    try {
      makeFolderSync(dirname(this.#path))
      const before = this.#fd
      this.#fd = this.#open()
      // A write that runs goes to the end of the file that was moved.
      if (this.#writing && this.#rest === undefined) this.#leaving.push(before)
      else closeSync(before)
    } catch (error) {
      this.#warn(error as Error)
    }
  }

  /** Writes waiting lines and closes the file. Drops later lines. */
  async end(): Promise<void> {
    if (this.#writing || this.#waiting !== '') {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
        if (!this.#writing) this.#flush()
      })
    }
    await this.#compressing
    this.endNow()
  }

  /** Like end(), but synchronous: the process is about to exit. */
  readonly endNow = (): void => {
    if (this.#fd === -1) return
    process.off('exit', this.endNow)
    clearTimeout(this.#timer)
    try {
      this.#tellLost()
      if (this.#rest !== undefined) writeSync(this.#fd, this.#rest)
      writeSync(this.#fd, this.#waiting)
      closeSync(this.#fd)
    } catch {
      // no way left to report the error
    }
    this.#fd = -1
    this.#options.maxWaiting = 0
  }

  #writeSoon(): void {
    const { wait } = this.#writes
    this.#due = wait === 0
    if (this.#due) process.nextTick(() => this.#due && this.#flush())
    else this.#timer = startTimer(this.#flush, wait).unref()
  }

  readonly #flush = (): void => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#due = false
    if (this.#fd === -1) return
    // After much text at once, lines would wait for as many pauses as it took writes.
    if (this.#waiting.length < FULL) this.#writes.use()
    if (this.#isGone()) this.reopen()
    this.#tellLost()
    const bytes = Buffer.from(this.#waiting)
    this.#waiting = ''
    if (this.#mustRoll(bytes.byteLength)) this.#roll()
    this.#writing = true
    this.#writeRest(bytes, 0)
  }

  #writeRest(bytes: Buffer, from: number): void {
    write(this.#fd, bytes, from, bytes.byteLength - from, null, (error, written) => {
      for (const fd of this.#leaving.splice(0)) closeSync(fd)
      if (this.#fd === -1) return
      if (error !== null) {
        this.#failed(error, bytes, from)
        return
      }
      this.#size += written
      if (from + written < bytes.byteLength) {
        this.#writeRest(bytes, from + written)
        return
      }
      this.#failure = undefined
      this.#written()
    })
  }

  /** A full disk, for example: nothing is lost while there is room for lines in memory. */
  #failed(error: Error, bytes: Buffer, from: number): void {
    this.#warn(error)
    this.#failure = error.message
    this.#rest = bytes.subarray(from)
    this.#timer = setTimeout(() => {
      this.#rest = undefined
      this.#timer = undefined
      if (this.#isGone()) this.reopen()
      this.#writeRest(bytes, from)
    }, RETRY_MS).unref()
  }

  /** Whether another file, or none, has the name of this one. Takes over the size of a truncated file. */
  #isGone(): boolean {
    const own = fstatSync(this.#fd)
    this.#size = Math.min(this.#size, own.size)
    try {
      const { ino, dev } = statSync(this.#path)
      return ino !== own.ino || dev !== own.dev
    } catch (error) {
      return (error as NodeJS.ErrnoException).code === 'ENOENT'
    }
  }

  #written(): void {
    this.#writing = false
    if (this.#waiting === '') this.#onIdle?.()
    else if (this.#onIdle !== undefined) this.#flush()
    else this.#writeSoon()
  }

  #tellLost(): void {
    if (this.#untold === 0) return
    this.#waiting += this.#options.droppedLine(this.#untold, this.#why)
    this.#untold = 0
  }

  #mustRoll(bytes: number): boolean {
    return (
      this.#size > 0 && (this.#size + bytes > this.#options.maxBytes || Date.now() >= endOfDay(this.#day))
    )
  }

  #roll(): void {
    try {
      setAside(this.#path, this.#day)
      const before = this.#fd
      this.#fd = this.#open()
      closeSync(before)
      this.#prune()
      this.#compress()
    } catch (error) {
      this.#day = Date.now() // continue in the old file until tomorrow
      this.#size = 0
      this.#warn(error as Error)
    }
  }

  /** Takes the existing file's time, so that the first write rolls a file of an earlier day. */
  #open(): number {
    const fd = openSync(this.#path, 'a', LOG_MODE)
    const { size, mtimeMs, mode } = fstatSync(fd)
    if ((mode & 0o007) !== 0) closeToOthers(fd, mode)
    this.#size = size
    this.#day = size === 0 ? Date.now() : mtimeMs
    return fd
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
      prune(this.#path, this.#options.keepBytes)
    } catch (error) {
      this.#warn(error as Error)
    }
  }

  #warn(error: Error): void {
    const now = performance.now()
    const { message } = error
    if (message === this.#warned && now - this.#lastWarning < WARN_PAUSE_MS) return
    this.#warned = message
    this.#lastWarning = now
    this.#options.warn(`${this.#path} cannot be written: ${message}`)
  }
}

/** A line of the server's log, with its line end. */
export function droppedLine(count: number, why: string): string {
  return `${localTime(Date.now())} [WARN ] main torchserve - ${count} lines dropped: ${why}\n`
}

/** Everybody could read the files of earlier versions. A pipe or a terminal stays unchanged. */
function closeToOthers(fd: number, mode: number): void {
  try {
    if (fstatSync(fd).isFile()) fchmodSync(fd, mode & 0o770)
  } catch {
    // another user's file
  }
}
