import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { pino, type Logger } from 'pino'
import { formatLogLine } from './log-line.ts'

export type { Logger } from 'pino'

export const LOG_FILE_NAME = 'ts_log.log'

/** What a stuck terminal or disk may hold back; further lines are dropped. */
const MAX_UNWRITTEN_BYTES = 8 * 1024 * 1024

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error'
  /** Lines as TorchServe writes them, or one JSON object per line. */
  format: 'text' | 'json'
  /** Folder for ts_log.log; absent: the log goes to stdout. */
  folder?: string
}

/**
 * Makes the server's logger. Children name their thread and logger: `log.child({ thread: 'W-9000-echo_1.0-stdout', logger:
 * 'MODEL_LOG' })`; other fields follow the message as `key=value`. What is unwritten leaves at the end of the process.
 */
export function createLogger(options: LogOptions): Logger {
  const destination = pino.destination({
    dest: options.folder === undefined ? 1 : logFile(options.folder),
    sync: false,
    maxLength: MAX_UNWRITTEN_BYTES,
  })
  const text = options.format === 'text'
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: text ? pino.stdTimeFunctions.epochTime : pino.stdTimeFunctions.isoTime,
      ...(text && { hooks: { streamWrite: formatLogLine } }),
    },
    destination,
  )
}

function logFile(folder: string): string {
  mkdirSync(folder, { recursive: true })
  return join(folder, LOG_FILE_NAME)
}
