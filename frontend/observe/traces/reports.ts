import { diag, DiagLogLevel } from '@opentelemetry/api'
import { redactSecrets } from '../../../common/texts.ts'

const MAX_REPORTS = 100
const MAX_CHARACTERS = 1_000

/** Passes each different report of the SDK on once. Reports that differ in numbers only are the same. */
export function reportTo(warn: (message: string) => void): void {
  const reported = new Set<string>()
  const report = (...pieces: unknown[]): void => {
    const message = pieces.map(textOf).join(': ').split('\n', 1)[0]!
    const line = `OpenTelemetry: ${redactSecrets(message).slice(0, MAX_CHARACTERS)}`
    const kind = line.replace(/\d+/g, '#')
    if (reported.has(kind) || reported.size >= MAX_REPORTS) return
    reported.add(kind)
    warn(line)
  }
  const quiet = (): void => undefined
  diag.setLogger(
    { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
}

function textOf(piece: unknown): string {
  if (piece instanceof Error) return piece.message
  const text = String(piece)
  return text.startsWith('{"') ? (exportFailure(text) ?? text) : text
}

/** What an exporter could not do: the SDK reports the fields of such an error, as JSON. */
function exportFailure(json: string): string | undefined {
  try {
    const { message, code } = JSON.parse(json) as { message?: unknown; code?: unknown }
    const why = [message, code].find((each) => typeof each === 'string' && each !== '')
    return why === undefined ? undefined : `an export failed: ${why as string}`
  } catch {
    return undefined
  }
}
