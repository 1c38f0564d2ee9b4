import type { LogEntry } from '../../../common/server-events.ts'
import { escapeControls, escapeLines } from '../../../common/texts.ts'

interface LogRecord {
  level: number
  /** Milliseconds since the epoch, or ISO 8601 in a log that is JSON. */
  time: number | string
  thread?: string
  logger?: string
  msg?: string
  err?: { message?: string; stack?: string }
  detail?: string
}

const LEVELS: Readonly<Record<number, string>> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO ',
  40: 'WARN ',
  50: 'ERROR',
  60: 'FATAL',
}

/**
 * Formats one line of pino's JSON like TorchServe's log4j2.xml: `2026-11-21T12:00:00,123 [INFO ] thread
 * logger - message`, in local time. Escapes control characters, so that input cannot forge a line. A stack
 * trace, or a detail, follows on lines of its own, which are indented for the same reason.
 */
export function formatLogLine(json: string): string {
  const { level, time, thread = 'main', logger = 'torchserve', msg, err, detail, ...fields } = parse(json)
  const label = LEVELS[level] ?? 'INFO '
  const head = `${localTime(Number(time))} [${label}] ${escapeControls(thread)} ${escapeControls(logger)} -`
  return `${head} ${messageText({ msg, err, detail }, fields)}\n`
}

/** The same line for those who watch: its parts, with the same text as message. */
export function logEntry(json: string): LogEntry {
  const { level, time, thread, logger = 'torchserve', msg, err, detail, ...fields } = parse(json)
  return {
    at: new Date(time).toISOString(),
    level: level >= 50 ? 'error' : level >= 40 ? 'warn' : level >= 30 ? 'info' : 'debug',
    logger,
    thread,
    message: messageText({ msg, err, detail }, fields),
  }
}

function messageText(
  { msg, err, detail }: Pick<LogRecord, 'msg' | 'err' | 'detail'>,
  fields: Record<string, unknown>,
): string {
  const message = escapeControls(msg ?? err?.message ?? '')
  return `${message}${fieldText(fields)}${stackText(err)}${detailText(detail)}`
}

function parse(json: string): LogRecord & Record<string, unknown> {
  return JSON.parse(json) as LogRecord & Record<string, unknown>
}

function fieldText(fields: Record<string, unknown>): string {
  let text = ''
  for (const [name, value] of Object.entries(fields)) {
    text += ` ${name}=${escapeControls(typeof value === 'string' ? value : JSON.stringify(value))}`
  }
  return text
}

function stackText(err: LogRecord['err']): string {
  return err?.stack === undefined ? '' : `\n${escapeLines(err.stack)}`
}

function detailText(detail: string | undefined): string {
  if (detail === undefined || detail === '') return ''
  const lines = detail.split('\n').map((line) => (line.startsWith(' ') ? line : `  ${line}`))
  return `\n${escapeLines(lines.join('\n'))}`
}

/** ISO 8601 in local time, with log4j's comma. */
export function localTime(time: number): string {
  const offset = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - offset).toISOString().slice(0, -1).replace('.', ',')
}

/** The line of the server's log that reports lost lines, with its line end. */
export function droppedLine(count: number, why: string): string {
  return `${localTime(Date.now())} [WARN ] main torchserve - ${count} lines dropped: ${why}\n`
}

/** Longest text of a JSON line, in characters; the rest of it is cut off. */
const MAX_TEXT = 2_000

/** One line of JSON lines, with its line end. */
export function jsonLine(value: object): string {
  const json = JSON.stringify(value, (_key, each: unknown) =>
    typeof each === 'string' && each.length > MAX_TEXT ? `${each.slice(0, MAX_TEXT)}...` : each,
  )
  return `${plainJson(json)}\n`
}

/**
 * JSON escapes only what is below a blank; everything else that ends a line somewhere or moves a terminal's
 * cursor is escaped too.
 */
export function plainJson(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029]/g,
    (letter) => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
