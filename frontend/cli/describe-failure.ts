import { ServeError } from '../../common/errors.ts'
import type { Output } from './output.ts'
import { Command, CommanderError, InvalidArgumentError } from 'commander'

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

/** A command that prints to `output`, what is wrong in one line; ending the process is left to its caller. */
export function newCommand(name: string, output: Output): Command {
  return new Command(name).exitOverride().configureOutput({
    writeOut: (text) => output.out(text.trimEnd()),
    writeErr: (text) => void tellFailure(text, output),
  })
}

/**
 * Parses the command line, and does what it asks for. An error is told in one line.
 * @param act called after the parse; not for --help. Default: the command's own actions are all
 * @returns the exit status
 */
export async function runCommand(
  program: Command,
  argv: readonly string[],
  output: Output,
  act: () => Promise<number> | number = () => 0,
): Promise<number> {
  try {
    await program.parseAsync(argv, { from: 'user' })
    return await act()
  } catch (error) {
    return error instanceof CommanderError ? error.exitCode : tellFailure(error, output)
  }
}

/** Parser of a flag that is a port. */
export function portOf(text: string): number {
  const port = /^\d{1,5}$/.test(text) ? Number(text) : NaN
  if (!(port <= 65_535)) throw new InvalidArgumentError('It must be a port from 0 to 65535.')
  return port
}
