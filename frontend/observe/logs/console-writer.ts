import { constants, openSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'
import { droppedLine, type LineWriter } from './log-file.ts'
import { startTimer } from '../../../common/timer.ts'

/** Maximum characters waiting for a stuck reader; further lines are dropped and counted. */
const MAX_WAITING = 8 * 1024 * 1024
/** A reader that takes nothing is tried again after this time, then after twice that, up to the limit. */
const RETRY_MS = 1
const MAX_RETRY_MS = 100
/** Milliseconds that writing the last lines may take. */
const END_MS = 1000

interface ConsoleWriterOptions {
  /** Default 8 Mi. */
  readonly maxWaiting?: number
}

/**
 * stdout or stderr of a server, which must outlive whoever reads them: a write never blocks, neither the
 * event loop nor the end of the process. A reader that has gone gets nothing more; for one that does not
 * read, lines wait up to a limit.
 */
export class ConsoleWriter implements LineWriter {
  /** Called once, with the reason, when lines are lost. */
  onLoss: ((why: string) => void) | undefined
  readonly #fd: number
  readonly #maxWaiting: number
  #waiting = ''
  /** Bytes that a write has begun with. */
  #leaving = 0
  #dropped = 0
  #writing = false
  #ended = false
  #onIdle: (() => void) | undefined

  constructor(fd: 1 | 2, { maxWaiting = MAX_WAITING }: ConsoleWriterOptions = {}) {
    this.#fd = nonBlocking(fd)
    this.#maxWaiting = maxWaiting
    process.once('exit', this.#endNow)
  }

  write(line: string): void {
    if (this.#ended) return
    if (this.#leaving + this.#waiting.length + line.length > this.#maxWaiting) {
      this.#dropped += 1
      this.#lose('nobody reads them')
      return
    }
    this.#waiting += line
    if (!this.#writing) this.#flush()
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
    const lost = this.#dropped === 0 ? '' : droppedLine(this.#dropped, 'nobody read the console')
    const bytes = Buffer.from(this.#waiting + lost)
    this.#waiting = ''
    this.#dropped = 0
    this.#writing = true
    this.#leaving = bytes.byteLength
    this.#writeRest(bytes, 0)
  }

  #writeRest(bytes: Buffer, from: number, retryMs = RETRY_MS): void {
    write(this.#fd, bytes, from, bytes.byteLength - from, null, (error, written) => {
      if (this.#ended) return
      const next = Math.min(retryMs * 2, MAX_RETRY_MS)
      if (error?.code === 'EAGAIN') startTimer(() => this.#writeRest(bytes, from, next), retryMs).unref()
      else if (error !== null) this.#failed(error)
      else if (from + written < bytes.byteLength) this.#writeRest(bytes, from + written)
      else this.#written()
    })
  }

  #written(): void {
    this.#writing = false
    this.#leaving = 0
    if (this.#waiting !== '' || this.#dropped > 0) this.#flush()
    else this.#onIdle?.()
  }

  /** A broken pipe, a terminal that hung up, a full disk: the log files are left. */
  #failed(error: NodeJS.ErrnoException): void {
    this.#waiting = ''
    this.#endNow()
    this.#onIdle?.()
    this.#lose(error.code === 'EPIPE' ? 'their reader has closed its end' : error.message)
  }

  #lose(why: string): void {
    const tell = this.onLoss
    this.onLoss = undefined
    tell?.(why)
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
