import { version } from '../package-info.ts'
import type { StartServer } from '../server-api.ts'
import { parseFlags, type CliFlags } from './flags.ts'
import { Terminal, type Output } from './output.ts'

export interface CliOptions {
  /** Loads the server's code. Called only in the serving process, after the settings were checked. */
  loadServer: () => Promise<StartServer>
  /** Default: stdout and stderr. */
  output?: Output
}

/**
 * The command `torchserve-ts`. Loads modules on demand, so that starting the server does not load those of
 * other commands.
 * @returns the exit status
 */
export async function runCli(argv: readonly string[], options: CliOptions): Promise<number> {
  if (options.output !== undefined) return run(argv, options, options.output)
  const terminal = new Terminal()
  const status = await run(argv, options, terminal)
  // Its caller ends the process, and with it what a slow reader has not taken yet.
  return (await terminal.written()) ? status : status || 1
}

async function run(argv: readonly string[], options: CliOptions, output: Output): Promise<number> {
  if (argv[0] === 'keys') {
    const { runKeys } = await import('./keys.ts')
    return runKeys(argv.slice(1), output)
  }
  const flags = parseFlags(argv, output)
  if (typeof flags === 'number') return flags
  if (flags.version) {
    output.out(`TorchServe-TS Version is ${version}`)
    return 0
  }
  if (flags.stop) {
    const { stopServer } = await import('./stop.ts')
    return stopServer(output, process.env)
  }
  if (flags.checkConfig) {
    const { checkConfig } = await import('./check-config.ts')
    return checkConfig(flags, output)
  }
  if (flags.checkArchive !== undefined) {
    const { checkArchive } = await import('./check-archive.ts')
    return checkArchive(flags.checkArchive, flags, output)
  }
  return start(argv, flags, options.loadServer, output)
}

async function start(
  argv: readonly string[],
  flags: CliFlags,
  loadServer: CliOptions['loadServer'],
  output: Output,
): Promise<number> {
  const { startInBackground, takeBackgroundMark } = await import('./background.ts')
  const isBackground = takeBackgroundMark(process.env)
  if (!isBackground && !flags.foreground) return startInBackground(argv, output, process.env)
  const { serve } = await import('./serve.ts')
  const { parentReporter, terminalReporter } = await import('./reporters.ts')
  const { ConsoleWriter } = await import('../observe/logs/console-writer.ts')
  const stdout = new ConsoleWriter(1)
  const stderr = new ConsoleWriter(2)
  const lines: Output = {
    out: (line) => stdout.write(`${line}\n`),
    err: (line) => stderr.write(`${line}\n`),
  }
  const reporter = isBackground ? parentReporter(lines) : terminalReporter(lines)
  const status = await serve(flags, loadServer, reporter, stdout)
  await Promise.all([stdout.end(), stderr.end()])
  return status
}
