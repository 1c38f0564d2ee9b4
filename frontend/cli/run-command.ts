import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { tellFailure } from './describe-failure.ts'
import type { Output } from './output.ts'

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
