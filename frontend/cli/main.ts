import { version } from '../package-info.ts'
import type { StartServer } from '../server-api.ts'
import { parseFlags, type CliFlags } from './flags.ts'
import { TERMINAL, type Output } from './output.ts'

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
  const output = options.output ?? TERMINAL
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
  if (!isBackground && !flags.foreground) return startInBackground(argv, flags, output, process.env)
  const { parentReporter, terminalReporter } = await import('./reporters.ts')
  const { serve } = await import('./serve.ts')
  const reporter = isBackground ? parentReporter(output) : terminalReporter(output)
  return serve(flags, loadServer, reporter, { console: !isBackground })
}
