import { pino, type Logger } from 'pino'
import { formatLogLine } from './log-line.ts'
import type { LineWriter } from './log-file.ts'

export type { Logger } from 'pino'

/** The logger name of what handlers log and their processes write. Its lines go to model_log.log too. */
export const MODEL_LOGGER = 'MODEL_LOG'
/** As it stands in pino's JSON, where no text of anybody can look like it: quotes are escaped there. */
const MODEL_FIELD = `"logger":"${MODEL_LOGGER}"`

/** What a stuck terminal may hold back; further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024

/** What writing the last lines may take. */
const END_MS = 1000

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error'
  /** Lines as TorchServe writes them, or one JSON object per line. */
  format: 'text' | 'json'
  /** Whether the log goes to stdout (too). */
  console: boolean
}

/** Files that the log goes to. They are not ended with it. */
export interface LogTargets {
  ts_log?: LineWriter
  model_log?: LineWriter
}

/** A logger, and the end of it. */
export interface ServerLog {
  readonly log: Logger
  /** From now on the log goes to these files too. */
  addFiles(files: LogTargets): void
  /** Writes what is unwritten on the console. What is logged after it is dropped. */
  end(): Promise<void>
}

/**
 * Makes the server's logger. Children name their thread and logger: `log.child({ thread: 'W-9000-echo_1.0-stdout', logger:
 * 'MODEL_LOG' })`; other fields follow the message as `key=value`. Writing does not hold up the server; what is unwritten when the
 * process exits without `end` is still written, though perhaps not in order.
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
    // A reader that is gone or stuck (a closed pipe, Ctrl-S) must not keep the process.
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
