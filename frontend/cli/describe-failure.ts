import { ServeError } from '../../common/errors.ts'
import type { Output } from './output.ts'

/** The user's message for a failed start: one line. Internal errors include their cause. */
export function describeFailure(thrown: unknown): string {
  const root = rootCause(thrown)
  const isInternal = thrown instanceof ServeError && thrown.code === 'INTERNAL' && root !== thrown
  const context = isInternal ? thrown.message.replace(/(: )?Internal server error$/, '') : ''
  const text = isInternal
    ? [context, messageOf(root)].filter((part) => part !== '').join(': ')
    : messageOf(thrown)
  return text.trim().replace(/\s*\n\s*/g, ' ')
}

/**
 * What helps when the machine refuses a start files or room; empty for other failures.
 * @param folders into which the server writes
 */
export function machineHint(thrown: unknown, folders: readonly string[]): string {
  const { code } = (rootCause(thrown) ?? {}) as { code?: unknown }
  if (code === 'EMFILE' || code === 'ENFILE') return '; raise the limit of open files (ulimit -n)'
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EROFS') return ''
  return `; the server writes into ${folders.join(' and ')}: make room there, or choose other folders`
}

/** Tells what was thrown, or a message, in one line. @returns the exit status */
export function tellFailure(thrown: unknown, output: Output): number {
  output.err(`torchserve-ts: ${describeFailure(thrown)}`)
  return 1
}

/** Details for developers: stack traces, and a worker's last output. */
export function failureDetail(thrown: unknown): string | undefined {
  if (!(thrown instanceof Error)) return undefined
  const detail = thrown instanceof ServeError ? thrown.detail : undefined
  return detail ?? thrown.stack
}

function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message || thrown.name : String(thrown)
}

function rootCause(thrown: unknown): unknown {
  let root = thrown
  while (root instanceof ServeError && root.cause !== undefined) root = root.cause
  return root
}
