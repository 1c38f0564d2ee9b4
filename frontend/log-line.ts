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
 * One line of pino's JSON as TorchServe writes it (spec 8.6): `2026-11-21T12:00:00,123 [INFO ] thread logger - message`, in local
 * time. Control characters are escaped, so that nobody's input can forge a line; a stack follows on lines of its own.
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

function localTime(time: number): string {
  const offset = new Date(time).getTimezoneOffset() * 60_000
  return new Date(time - offset).toISOString().slice(0, -1).replace('.', ',')
}

function fieldText(fields: Record<string, unknown>): string {
  let text = ''
  for (const [name, value] of Object.entries(fields)) {
    text += ` ${name}=${typeof value === 'string' ? escapeControls(value) : JSON.stringify(value)}`
  }
  return text
}

function stackText(err: LogRecord['err']): string {
  if (err?.stack === undefined) return ''
  return `\n${err.stack.split('\n').map(escapeControls).join('\n')}`
}

function escapeControls(text: string): string {
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029]/g, (letter) =>
    letter === '\n' ? '\\n' : `\\x${letter.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}
