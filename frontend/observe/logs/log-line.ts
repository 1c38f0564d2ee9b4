import { localTime } from './clock.ts'
import { escapeControls } from './escape.ts'

interface LogRecord {
  level: number
  time: number
  thread?: string
  logger?: string
  msg?: string
  err?: { message?: string; stack?: string }
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
 * trace follows on its own lines.
 */
export function formatLogLine(json: string): string {
  const { level, time, thread = 'main', logger = 'torchserve', msg, err, ...fields } = parse(json)
  const label = LEVELS[level] ?? 'INFO '
  const head = `${localTime(time)} [${label}] ${escapeControls(thread)} ${escapeControls(logger)} -`
  const message = escapeControls(msg ?? err?.message ?? '')
  return `${head} ${message}${fieldText(fields)}${stackText(err)}\n`
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
  if (err?.stack === undefined) return ''
  return `\n${err.stack.split('\n').map(escapeControls).join('\n')}`
}
