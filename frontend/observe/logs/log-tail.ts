import type { LogEntry } from '../../../common/server-events.ts'
import { logEntry } from './log-line.ts'

/** Lines that are kept. */
const LINES = 500
/** Characters of a message that are shown. */
const MAX_MESSAGE = 16_384
/** Characters of a line that is kept as it is; of a longer one only what is shown of it. */
const MAX_LINE = 65_536

/**
 * The last lines of the log, for those who watch, in at most 32 million characters. A line costs a reference;
 * it is read when somebody asks.
 */
export class LogTail {
  readonly #lines = new Array<string>(LINES).fill('')
  #written = 0

  /** Lines so far. */
  get written(): number {
    return this.#written
  }

  /** Characters that it keeps. */
  get characters(): number {
    return this.#lines.reduce((sum, { length }) => sum + length, 0)
  }

  /** `json`: one line of pino. */
  add(json: string): void {
    this.#lines[this.#written % LINES] = json.length <= MAX_LINE ? json : shortLine(json)
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

/** A line of its own, so that nothing of the long one stays in memory. */
function shortLine(json: string): string {
  const { level, time, thread, logger } = JSON.parse(json) as Record<string, unknown>
  return JSON.stringify({ level, time, thread, logger, msg: shortened(logEntry(json)).message })
}
