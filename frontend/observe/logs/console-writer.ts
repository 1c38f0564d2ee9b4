import { constants, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { droppedLine, type LineWriter } from './log-file.ts'
import { startTimer } from '../../../common/timer.ts'

/** Maximum characters waiting for a stuck reader; further lines are dropped and counted. */
const MAX_WAITING = 8 * 1024 * 1024
const NOT_READ = 'nobody read the console'
/** What cannot be written is tried again after this time, then after twice that, up to the limit. */
const RETRY_MS = 1
const MAX_RETRY_MS = 100
/** Milliseconds between two warnings. */
const WARN_PAUSE_MS = 60_000
/** Errors of a pipe, socket or terminal whose other end has gone. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'EIO', 'EBADF', 'ENXIO'])
/** Milliseconds that writing the last lines may take. */
const END_MS = 1000

interface ConsoleWriterOptions {
  /** Default 8 Mi. */
  readonly maxWaiting?: number
  /** Whether its reader gets only the lines until `started`. Default: all. */
  readonly untilStarted?: boolean
}

/**
 * stdout or stderr of a server, which must outlive whoever reads them: a write never blocks, neither the
 * event loop nor the end of the process. A reader that has gone gets nothing more. Lines wait up to a limit
 * for a reader that does not read, and for a file on a full disk.
 */
export class ConsoleWriter implements LineWriter {
  /** Called when lines cannot be written, at most once a minute. */
  warn: ((message: string) => void) | undefined
  readonly untilStarted: boolean
  readonly #fd: number
  readonly #maxWaiting: number
  #waiting = ''
  /** Bytes that a write has begun with. */
  #leaving = 0
  #lost = 0
  /** Lost lines that the console has not reported yet. */
  #untold = 0
  #why = NOT_READ
  #lastWarning = -Infinity
  #writing = false
  #ended = false
  /** The lines that follow are for nobody. */
  #left = false
  #onIdle: (() => void) | undefined

  constructor(fd: 1 | 2, { maxWaiting = MAX_WAITING, untilStarted = false }: ConsoleWriterOptions = {}) {
    this.untilStarted = untilStarted
    this.#fd = nonBlocking(fd)
    this.#maxWaiting = maxWaiting
    process.once('exit', this.#endNow)
  }

  /** Lines that nobody gets. */
  get lost(): number {
    return this.#lost
  }

  /** @param count of its lines */
  write(line: string, count = 1): void {
    if (this.#ended) {
      if (!this.#left) this.#lost += count
      return
    }
    if (this.#leaving + this.#waiting.length + line.length > this.#maxWaiting) {
      this.#lost += count
      this.#untold += count
      this.#warn(`Lines for the console are dropped: ${this.#why}`)
      return
    }
    this.#waiting += line
    if (!this.#writing) this.#flush()
  }

  /** The start is over, well or not: a reader that waits for that gets what is left of its lines. */
  async started(): Promise<void> {
    if (!this.untilStarted) return
    await this.end()
    this.#left = true
  }

  /** Writes waiting lines, for a second at most. Drops later lines. */
  async end(): Promise<void> {
    if (!this.#ended && this.#writing) {
      let timer: NodeJS.Timeout | undefined
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve
        timer = setTimeout(resolve, END_MS)
      })
      clearTimeout(timer)
    }
    this.#endNow()
  }

  readonly #endNow = (): void => {
    process.off('exit', this.#endNow)
    if (this.#ended) return
    this.#ended = true
    try {
      if (this.#waiting !== '') writeSync(this.#fd, this.#waiting)
    } catch {
      // no way left to report the error
    }
    this.#waiting = ''
  }

  #flush(): void {
    const lost = this.#untold === 0 ? '' : droppedLine(this.#untold, this.#why)
    const bytes = Buffer.from(this.#waiting + lost)
    this.#waiting = ''
    this.#untold = 0
    this.#writing = true
    this.#leaving = bytes.byteLength
    this.#writeRest(bytes, 0)
  }

  #writeRest(bytes: Buffer, from: number, retryMs = RETRY_MS): void {
    write(this.#fd, bytes, from, bytes.byteLength - from, null, (error, written) => {
      if (this.#ended) return
      if (error !== null) this.#failed(error, bytes, from, retryMs)
      else if (from + written < bytes.byteLength) this.#writeRest(bytes, from + written)
      else this.#written()
    })
  }

  #written(): void {
    this.#writing = false
    this.#leaving = 0
    if (this.#waiting !== '' || this.#untold > 0) this.#flush()
    else this.#onIdle?.()
  }

  #failed(error: NodeJS.ErrnoException, bytes: Buffer, from: number, retryMs: number): void {
    if (GONE.has(error.code)) {
      this.#waiting = ''
      this.#endNow()
      this.#onIdle?.()
      const why = error.code === 'EPIPE' ? 'its reader has closed its end' : error.message
      this.#warn(`Lines for the console are dropped: ${why}`)
      return
    }
    this.#why = error.code === 'EAGAIN' ? NOT_READ : error.message
    if (error.code !== 'EAGAIN') this.#warn(`Lines for the console wait: ${error.message}`)
    const next = Math.min(retryMs * 2, MAX_RETRY_MS)
    startTimer(() => this.#writeRest(bytes, from, next), retryMs).unref()
  }

  #warn(message: string): void {
    const now = performance.now()
    if (now - this.#lastWarning < WARN_PAUSE_MS) return
    this.#lastWarning = now
    this.warn?.(message)
  }
}

/**
 * A descriptor for the same place on which a write does not block: a blocked one keeps a thread, and the
 * process waits for its threads when it exits.
 */
function nonBlocking(fd: 1 | 2): number {
  // The stream of Node makes pipes and sockets non-blocking; nobody else may hear of its errors.
  const stream = fd === 1 ? process.stdout : process.stderr
  stream.on('error', () => undefined)
  if (!isatty(fd)) return fd
  try {
    // Its own flags: the shell and other programs share those of the descriptor itself.
    return openSync(`/dev/fd/${fd}`, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY)
  } catch {
    return fd
  }
}
