import { escapeControls } from '../../../common/texts.ts'
import { MODEL_LOGGER } from '../../observe/logs/logger.ts'
import type { LineWriter } from '../../observe/logs/appender.ts'
import type { Output } from '../output.ts'

interface LogRecord {
  level: number
  thread?: string
  logger?: string
  msg?: string
  detail?: string
  err?: { message?: string; stack?: string }
}

const INFO = 30
const WARN = 40
/** `W-9000-words_1.0`, with the name of an output at its end. */
const WORKER_THREAD = /^W-\d+-(.+)_[^_]*$/
/** What every worker says first, as TorchServe's do. */
const PID_LINE = /^\[PID\]\d+$/

/**
 * The server's log for the author of a handler: what handlers print, what happens to workers, warnings and
 * errors with their traces, each after the model's name.
 */
export class DevLog implements LineWriter {
  readonly #output: Output

  constructor(output: Output) {
    this.#output = output
  }

  /** @param line one record as JSON */
  write(line: string): void {
    const { level, thread = '', logger, msg, detail, err } = JSON.parse(line) as LogRecord
    const model = WORKER_THREAD.exec(thread)?.[1]
    if (PID_LINE.test(msg ?? '')) return
    if (logger === MODEL_LOGGER) this.#output.out(`${model ?? thread} | ${escapeControls(msg ?? '')}`)
    else if (level >= (model === undefined ? WARN : INFO)) {
      const message = escapeControls(msg ?? err?.message ?? '')
      this.#output.err(model === undefined ? message : `${model}: ${message}`)
      for (const each of indented(detail ?? err?.stack)) this.#output.err(each)
    }
  }
}

/** The lines of a trace, below the line that tells of it. */
export function indented(detail: string | undefined): string[] {
  if (detail === undefined || detail === '') return []
  return detail.split('\n').map((line) => `  ${escapeControls(line)}`)
}
