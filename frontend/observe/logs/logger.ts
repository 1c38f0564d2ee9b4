import { pino, type Logger } from 'pino'
import { formatLogLine } from './log-line.ts'
import type { LineWriter } from './log-file.ts'

export type { Logger } from 'pino'

/** Logger name of handlers' logs and their processes' output. Its lines also go to model_log.log. */
export const MODEL_LOGGER = 'MODEL_LOG'
/** The name in pino's JSON. Text inside a message cannot match it, because its quotes are escaped. */
const MODEL_FIELD = `"logger":"${MODEL_LOGGER}"`

/** Maximum bytes waiting for a stuck terminal; further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024

/** Milliseconds that writing the last lines may take. */
const END_MS = 1000

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error'
  /** TorchServe's format, or one JSON object per line. */
  format: 'text' | 'json'
  /** Whether the log also goes to stdout. */
  console: boolean
}

/** Files that the log goes to. Their owner ends them. */
export interface LogTargets {
  ts_log?: LineWriter
  model_log?: LineWriter
}

/** A logger and its end. */
export interface ServerLog {
  readonly log: Logger
  /** Adds files as destinations of the log. */
  addFiles(files: LogTargets): void
  /** Writes waiting lines to the console. Drops later lines. */
  end(): Promise<void>
}

/**
 * Makes the server's logger. Children name their thread and logger: `log.child({ thread:
 * 'W-9000-echo_1.0-stdout', logger: 'MODEL_LOG' })`; other fields follow the message as `key=value`. Writes
 * asynchronously; lines that wait when the process exits without `end` are still written, possibly out of
 * order.
 */
export function createLogger(options: LogOptions): ServerLog {
  const text = options.format === 'text'
  const console = options.console ? consoleWriter() : undefined
  let targets: LogTargets = {}
  let ended = false
  const write = (json: string): void => {
    if (ended) return
    const line = text ? formatLogLine(json) : json
    console?.write(line)
    targets.ts_log?.write(line)
    if (targets.model_log !== undefined && json.includes(MODEL_FIELD)) targets.model_log.write(line)
  }
  const timestamp = text ? pino.stdTimeFunctions.epochTime : pino.stdTimeFunctions.isoTime
  const log = pino({ level: options.level, base: null, timestamp }, { write })
  return {
    log,
    addFiles: (files) => {
      targets = files
    },
    end: async () => {
      ended = true
      await console?.end()
    },
  }
}

function consoleWriter(): { write(line: string): void; end(): Promise<void> } {
  const destination = pino.destination({ dest: 1, sync: false, maxLength: MAX_UNWRITTEN_BYTES })
  return {
    write: (line) => void destination.write(line),
    // A closed or stopped reader (broken pipe, Ctrl-S) must not keep the process alive.
    end: () =>
      new Promise((resolve) => {
        const timer = setTimeout(resolve, END_MS)
        destination.once('close', () => {
          clearTimeout(timer)
          resolve()
        })
        destination.end()
      }),
  }
}
