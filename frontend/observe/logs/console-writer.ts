import { constants, openSync } from 'node:fs'
import { isatty } from 'node:tty'
import { within } from '../../../common/timer.ts'
import { Appender } from './appender.ts'

/** A write that fails is tried again after this time, then after twice that, up to the limit. */
const RETRY_MS = 1
const MAX_RETRY_MS = 100
/** Milliseconds that writing the last lines may take. */
const END_MS = 1_000
/** Errors of a pipe, socket or terminal whose other end has gone. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'ECONNRESET', 'EIO', 'EBADF', 'ENXIO'])

/**
 * stdout or stderr of a server, which must outlive whoever reads them: a write never blocks, neither the
 * event loop nor the end of the process. A reader that has gone gets nothing more. Lines wait up to a limit
 * for a reader that does not read, and for a file on a full disk.
 */
export class ConsoleWriter extends Appender {
  /** Whether its reader gets only the lines until `started`. */
  readonly untilStarted: boolean

  constructor(fd: 1 | 2, untilStarted = false) {
    super(nonBlocking(fd), 'nobody read the console', {})
    this.untilStarted = untilStarted
  }

  /** The start is over, well or not: a reader that waits for that gets what is left of its lines. */
  async started(): Promise<void> {
    if (!this.untilStarted) return
    await this.end()
    this.isOver = true
  }

  /** Writes waiting lines, for a second at most. Drops later lines. */
  override async end(): Promise<void> {
    await within(END_MS, super.end())
    this.endNow()
  }

  protected override retryAfter(
    { code, message }: NodeJS.ErrnoException,
    failures: number,
  ): number | undefined {
    if (GONE.has(code)) {
      this.endNow() // before the warning, which also goes to the console
      this.dropped(code === 'EPIPE' ? 'its reader has closed its end' : message)
      return undefined
    }
    if (code !== 'EAGAIN') this.warnOf(`Lines for the console wait: ${message}`, 'console')
    return Math.min(RETRY_MS * 2 ** failures, MAX_RETRY_MS)
  }

  protected override dropped(why: string): void {
    this.warnOf(`Lines for the console are dropped: ${why}`, 'console')
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
