import { write, writeSync } from 'node:fs'
import { Allowance } from '../../../common/byte-flow.ts'
import { startTimer } from '../../../common/timer.ts'
import { droppedLine } from './log-line.ts'

/** Takes lines, each with its line end. */
export interface LineWriter {
  write(line: string): void
}

export interface AppenderOptions {
  /**
   * Maximum characters in memory, those of the running write included; further lines are lost and counted.
   * Default 8 Mi.
   */
  maxWaiting?: number
  /** The line that reports lost lines, with its line end. Default: one of the server's log. */
  droppedLine?: (count: number, why: string) => string
  /** Called when lines cannot be written; for one reason in a row, at most once a minute. */
  warn?: (message: string) => void
}

const MAX_WAITING = 8 * 1024 * 1024
/** A busy log writes once per pause, in milliseconds; a quiet one line by line. */
const PAUSE_MS = 50
const BURST = 20
/** Characters that are worth a write of their own. */
const FULL = 131_072
const WARN_PAUSE_MS = 60_000

/**
 * Appends lines to a descriptor with asynchronous writes. A quiet log writes in the same turn of the event
 * loop, so that the line is there when the client reads the file after its answer; a busy one writes every
 * 50 ms. Lines wait in memory, up to a limit, while a write runs or fails. Lines that still wait when the
 * process exits are written then.
 */
export abstract class Appender implements LineWriter {
  /** See AppenderOptions. */
  warn: ((message: string) => void) | undefined
  protected fd: number
  /** Whether later lines are for nobody, and so not lost. */
  protected isOver = false
  readonly #maxWaiting: number
  readonly #droppedLine: (count: number, why: string) => string
  #waiting = ''
  /** Characters of the running write; 0: none runs. */
  #leaving = 0
  #lost = 0
  /** Lost lines that no line has reported yet. */
  #unreported = 0
  /** Attempts that have failed since something was last written. */
  #failures = 0
  /** Why the last write failed, until one succeeds. */
  #failure: string | undefined
  #why = ''
  readonly #slow: string
  /** What a failed write has left, until it is tried again. */
  #rest: Buffer | undefined
  readonly #writes = new Allowance(PAUSE_MS, BURST)
  #timer: NodeJS.Timeout | undefined
  /** A write is scheduled for the end of the current turn. */
  #due = false
  #ended = false
  /** What the last warning was about. */
  #warned = ''
  #lastWarning = -Infinity
  #onIdle: (() => void) | undefined

  /** @param slow why lines are lost when writes succeed, but too slowly */
  constructor(fd: number, slow: string, options: AppenderOptions) {
    const { maxWaiting = MAX_WAITING, droppedLine: line = droppedLine, warn } = options
    this.fd = fd
    this.#slow = slow
    this.#maxWaiting = maxWaiting
    this.#droppedLine = line
    this.warn = warn
    process.once('exit', this.endNow)
  }

  /** Lines that were not written: the disk or the reader was too slow, or it failed for too long. */
  get lost(): number {
    return this.#lost
  }

  /** Whether the descriptor is in use, or no longer open. */
  protected get isBusy(): boolean {
    return this.#writing || this.#ended
  }

  get #writing(): boolean {
    return this.#leaving > 0
  }

  write(line: string): void {
    if (this.#ended || this.#leaving + this.#waiting.length + line.length > this.#maxWaiting) {
      this.#drop()
      return
    }
    this.#waiting += line
    if (this.#writing || this.#due) return
    if (this.#waiting.length >= FULL) this.#flush()
    else if (this.#timer === undefined) this.#writeSoon()
  }

  /** Writes waiting lines, however long that takes. Drops later lines. */
  async end(): Promise<void> {
    if (!this.#ended && (this.#writing || this.#waiting !== '')) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
        if (!this.#writing) this.#flush()
      })
    }
    this.endNow()
  }

  /** Like end(), but synchronous: the process is about to exit. */
  readonly endNow = (): void => {
    process.off('exit', this.endNow)
    if (this.#ended) return
    this.#ended = true
    clearTimeout(this.#timer)
    try {
      if (this.#unreported > 0) this.#reportLost()
      if (this.#rest !== undefined) writeSync(this.fd, this.#rest)
      if (this.#waiting !== '') writeSync(this.fd, this.#waiting)
      // Do not close during a write: the descriptor number could be reused.
      if (!this.#writing || this.#rest !== undefined) this.closed()
    } catch {
      // no way left to report the error
    }
    this.#waiting = ''
    this.#onIdle?.()
  }

  /**
   * Called before each write; may change the descriptor.
   * @param bytes of the write that begins; undefined: of a failed one that is tried again
   */
  protected prepare(_bytes: number | undefined): void {
    // The descriptor stays.
  }

  /**
   * Reports a failed write.
   * @param failures attempts that had failed before, since something was last written
   * @returns milliseconds until it is tried again; undefined: it has called `endNow`
   */
  protected abstract retryAfter(error: NodeJS.ErrnoException, failures: number): number | undefined

  /** Lines are lost for this reason. */
  protected dropped(_why: string): void {
    // The line that counts them says it.
  }

  /** Nothing more will be written. */
  protected closed(): void {
    // The descriptor is not ours.
  }

  /** Warns; `about` is the reason, see AppenderOptions. */
  protected warnOf(message: string, about = message): void {
    const now = performance.now()
    if (about === this.#warned && now - this.#lastWarning < WARN_PAUSE_MS) return
    this.#warned = about
    this.#lastWarning = now
    this.warn?.(message)
  }

  #drop(): void {
    if (this.isOver) return
    this.#lost += 1
    if (this.#ended) return
    this.#unreported += 1
    this.#why = this.#failure ?? this.#slow
    this.dropped(this.#why)
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
    if (this.#ended) return
    // A full write does not count: the lines after several of them would wait one pause for each.
    if (this.#waiting.length < FULL) this.#writes.use()
    if (this.#unreported > 0) this.#reportLost()
    const text = this.#waiting
    const bytes = Buffer.from(text)
    this.#waiting = ''
    this.prepare(bytes.byteLength)
    this.#leaving = text.length
    this.#write(bytes)
  }

  #write(bytes: Buffer): void {
    write(this.fd, bytes, 0, bytes.byteLength, null, (error, written) => {
      if (this.#ended) return this.closed()
      if (error !== null) return this.#failed(error, bytes)
      this.#failures = 0
      if (written < bytes.byteLength) return this.#write(bytes.subarray(written))
      this.#failure = undefined
      this.#leaving = 0
      if (this.#waiting === '' && this.#unreported === 0) this.#onIdle?.()
      else if (this.#onIdle !== undefined) this.#flush()
      else this.#writeSoon()
    })
  }

  /** A full disk, for example: nothing is lost while there is room for lines in memory. */
  #failed(error: NodeJS.ErrnoException, rest: Buffer): void {
    this.#failure = error.code === 'EAGAIN' ? undefined : error.message
    const wait = this.retryAfter(error, this.#failures)
    if (wait === undefined) return
    this.#failures += 1
    this.#rest = rest
    this.#timer = startTimer(() => {
      this.#rest = undefined
      this.#timer = undefined
      this.prepare(undefined)
      this.#write(rest)
    }, wait).unref()
  }

  #reportLost(): void {
    this.#waiting += this.#droppedLine(this.#unreported, this.#why)
    this.#unreported = 0
  }
}
