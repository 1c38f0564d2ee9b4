import { ServeError } from '../../protocol/errors.ts'

/** What a user reads about a failed start: one line. */
export function describeFailure(thrown: unknown): string {
  const told = thrown instanceof ServeError && thrown.code === 'INTERNAL' ? (thrown.cause ?? thrown) : thrown
  const text = told instanceof Error ? told.message || told.name : String(told)
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

/** What a developer reads: stacks, and what a worker left behind. */
export function failureDetail(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const detail = thrown instanceof ServeError ? thrown.detail : undefined
  return detail ?? thrown.stack
}
