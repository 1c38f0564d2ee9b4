import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pino, type Logger } from 'pino'
import { formatLogLine } from './log-line.ts'

export type { Logger } from 'pino'

export const LOG_FILE_NAME = 'ts_log.log'

/** What a stuck terminal or disk may hold back; further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024

/** What writing the last lines may take. */
const END_MS = 1000

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error'
  /** Lines as TorchServe writes them, or one JSON object per line. */
  format: 'text' | 'json'
  /** Folder for ts_log.log; absent: the log goes to stdout. */
  folder?: string
}

/** A logger, and the end of it. */
export interface ServerLog {
  readonly log: Logger
  /** Writes what is unwritten. What is logged after it is dropped. */
  end(): Promise<void>
}

/**
 * Makes the server's logger. Children name their thread and logger: `log.child({ thread: 'W-9000-echo_1.0-stdout', logger:
 * 'MODEL_LOG' })`; other fields follow the message as `key=value`. Writing does not hold up the server; what is unwritten when the
 * process exits without `end` is still written, though perhaps not in order.
 */
export function createLogger(options: LogOptions): ServerLog {
  const destination = pino.destination({
    dest: options.folder === undefined ? 1 : logFile(options.folder),
    sync: false,
    maxLength: MAX_UNWRITTEN_BYTES,
  })
  const text = options.format === 'text'
  let ended = false
  const log = pino(
    {
      level: options.level,
      base: null,
      timestamp: text ? pino.stdTimeFunctions.epochTime : pino.stdTimeFunctions.isoTime,
      ...(text && { hooks: { streamWrite: formatLogLine } }),
    },
    {
      write: (line: string) => {
        if (!ended) destination.write(line)
      },
    },
  )
  // A reader that is gone or stuck (a closed pipe, Ctrl-S) must not keep the process.
  const end = (): Promise<void> =>
    new Promise((resolve) => {
      ended = true
      const timer = setTimeout(resolve, END_MS)
      destination.once('close', () => {
        clearTimeout(timer)
        resolve()
      })
      destination.end()
    })
  return { log, end }
}

function logFile(folder: string): string {
  mkdirSync(folder, { recursive: true })
  return join(folder, LOG_FILE_NAME)
}
