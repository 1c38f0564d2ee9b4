import { pino, type Logger } from 'pino'
import { formatLogLine } from './log-line.ts'
import { LogTail } from './log-tail.ts'
import type { LineWriter } from './log-file.ts'

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
