import type { LogEntry } from '../../../common/server-events.ts'
import { logEntry } from './log-line.ts'

/** Lines that are kept. */
const LINES = 500
/** Characters of a message that are kept. */
const MAX_MESSAGE = 16_384

/**
 * The last lines of the log, for those who watch. A line costs a reference; it is read when somebody asks.
 */
export class LogTail {
  readonly #lines = new Array<string>(LINES).fill('')
  #written = 0

  /** Lines so far. */
  get written(): number {
    return this.#written
  }

  /** `json`: one line of pino. */
  add(json: string): void {
    this.#lines[this.#written % LINES] = json
    this.#written += 1
  }

  /** The last lines after the first `count`, and how many between are no longer there. */
  after(count: number, limit = LINES): { lines: LogEntry[]; dropped: number } {
    const first = Math.max(count, this.#written - Math.min(limit, LINES))
    const lines: LogEntry[] = []
    for (let at = first; at < this.#written; at++) lines.push(shortened(logEntry(this.#lines[at % LINES]!)))
    return { lines, dropped: first - count }
  }
}

function shortened(entry: LogEntry): LogEntry {
  if (entry.message.length <= MAX_MESSAGE) return entry
  return { ...entry, message: `${entry.message.slice(0, MAX_MESSAGE)}…` }
}
