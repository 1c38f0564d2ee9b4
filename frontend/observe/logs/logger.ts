import { pino, type Logger } from 'pino'
import type { LogEntry } from '../../../common/server-events.ts'
import { formatLogLine, logEntry } from './log-line.ts'
import type { LineWriter } from './appender.ts'

export type { Logger } from 'pino'

/** Logger name of handlers' logs and their processes' output. Its lines also go to model_log.log. */
export const MODEL_LOGGER = 'MODEL_LOG'
/** The name in pino's JSON. Text inside a message cannot match it, because its quotes are escaped. */
const MODEL_FIELD = `"logger":"${MODEL_LOGGER}"`

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error'
  /** TorchServe's format, or one JSON object per line. */
  format: 'text' | 'json'
  /** Where `log` also goes; its owner ends it. Undefined: only to files. */
  console: LineWriter | undefined
  /** Which of the two logs the console gets. Default: both. */
  onConsole?: readonly string[]
}

/** Files that the log goes to. Their owner ends them. */
export interface LogTargets {
  ts_log?: LineWriter
  model_log?: LineWriter
}

/** A logger and its end. */
export interface ServerLog {
  readonly log: Logger
  /** Writes to the files only: for what stands on the console in another form. */
  readonly fileLog: Logger
  /** Adds files as destinations of the log. */
  addFiles(files: LogTargets): void
  /** Its last lines. */
  readonly tail: LogTail
  /** Drops later lines. */
  end(): void
}

/**
 * Makes the server's logger. Children name their thread and logger: `log.child({ thread:
 * 'W-9000-echo_1.0-stdout', logger: 'MODEL_LOG' })`; other fields follow the message as `key=value`. Writes
 * asynchronously; lines that wait when the process exits without `end` are still written, possibly out of
 * order.
 */
export function createLogger(options: LogOptions): ServerLog {
  const text = options.format === 'text'
  const { onConsole = ['ts_log', 'model_log'] } = options
  let targets: LogTargets = {}
  let ended = false
  const tail = new LogTail()
  const writeTo = (json: string, lineConsole: LineWriter | undefined): void => {
    if (ended) return
    tail.add(json)
    const line = text ? formatLogLine(json) : json
    const isOfModel = json.includes(MODEL_FIELD)
    if (onConsole.includes(isOfModel ? 'model_log' : 'ts_log')) lineConsole?.write(line)
    targets.ts_log?.write(line)
    if (isOfModel) targets.model_log?.write(line)
  }
  const timestamp = text ? pino.stdTimeFunctions.epochTime : pino.stdTimeFunctions.isoTime
  const settings = { level: options.level, base: null, timestamp }
  const log = pino(settings, { write: (json: string) => writeTo(json, options.console) })
  const fileLog = pino(settings, { write: (json: string) => writeTo(json, undefined) })
  return {
    log,
    fileLog,
    tail,
    addFiles: (files) => {
      targets = files
    },
    end: () => {
      ended = true
    },
  }
}

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
