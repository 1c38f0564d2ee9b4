import { diag, DiagLogLevel } from '@opentelemetry/api'

const MAX_REPORTS = 100
const MAX_CHARACTERS = 1_000

/** Each different report of the SDK in this thread goes there once. */
export function reportTo(warn: (message: string) => void): void {
  const reported = new Set<string>()
  const report = (...pieces: unknown[]): void => {
    const message = pieces.map((piece) => (piece instanceof Error ? piece.message : String(piece))).join(': ')
    const line = `OpenTelemetry: ${message.split('\n', 1)[0]!.slice(0, MAX_CHARACTERS)}`
    if (reported.has(line) || reported.size >= MAX_REPORTS) return
    reported.add(line)
    warn(line)
  }
  const quiet = (): void => undefined
  diag.setLogger(
    { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  )
}
