import { closest } from '../../common/names.ts'
import { version } from '../package-info.ts'
import type { StartServer } from '../server-api.ts'
import { isProgram, parseFlags, type CliFlags } from './flags.ts'
import { tempDirOf } from './pid-file.ts'
import { Terminal, type Output } from './output.ts'

export interface CliOptions {
  /** Loads the server's code. Called only in the serving process, after the settings were checked. */
  loadServer: () => Promise<StartServer>
  /** Default: stdout and stderr. */
  output?: Output
}

/** @returns the exit status */
type Command = (argv: readonly string[], output: Output, options: CliOptions) => Promise<number>

/** What stands before the flags, and what runs then. Everything else is TorchServe's command. */
const COMMANDS = new Map<string, () => Promise<Command>>([
  ['dev', async () => (await import('./dev/command.ts')).runDev],
  ['init', async () => (await import('./init/command.ts')).runInit],
  ['keys', async () => (await import('./keys.ts')).runKeys],
  ['migrate', async () => (await import('./migrate.ts')).runMigrate],
  ['serve', async () => (await import('./serve-model.ts')).runServe],
  ['status', async () => (await import('./status.ts')).runStatus],
])

/** Each has a --help of its own. */
export function commandNames(): string[] {
  return [...COMMANDS.keys()]
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

async function run(words: readonly string[], options: CliOptions, output: Output): Promise<number> {
  const argv = withFlag(isProgram(words[0]) ? words.slice(1) : words)
  const command = COMMANDS.get(argv[0] ?? '')
  if (command !== undefined) return (await command())(argv.slice(1), output, options)
  const unknown = unknownCommand(argv[0])
  if (unknown !== undefined) {
    output.err(`torchserve-ts: ${unknown}`)
    return 1
  }
  const flags = parseFlags(argv, output)
  if (typeof flags === 'number') return flags
  if (flags.version) {
    output.out(`TorchServe-TS Version is ${version}`)
    return 0
  }
  if (flags.stop) {
    const { stopServer } = await import('./stop.ts')
    return stopServer(flags, output, process.env)
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

/** Commands elsewhere; in TorchServe, and so here, they are flags. Both work. */
const WORDS_OF_FLAGS = ['start', 'stop', 'version']

/** The arguments with the flag that the first word means: `help dev` is `dev --help`. */
function withFlag(argv: readonly string[]): readonly string[] {
  const [first = '', ...others] = argv
  if (WORDS_OF_FLAGS.includes(first)) return [`--${first}`, ...others]
  if (first !== 'help') return argv
  const [command = ''] = others
  return command === '' || WORDS_OF_FLAGS.includes(command) ? ['--help'] : [command, '--help']
}

/** What is wrong with the first word; undefined for a command and for a flag. */
function unknownCommand(word: string | undefined): string | undefined {
  if (word === undefined || word.startsWith('-')) return undefined
  const near = closest(word, [...COMMANDS.keys(), ...WORDS_OF_FLAGS, 'help'], 1)
  const hint = near === undefined ? '' : ` Did you mean ${near}?`
  return `There is no command ${word}.${hint} Commands: ${commandNames().join(', ')}; flags: --help`
}

async function start(
  argv: readonly string[],
  flags: CliFlags,
  loadServer: CliOptions['loadServer'],
  output: Output,
): Promise<number> {
  const { startInBackground, takeBackgroundMark } = await import('./background.ts')
  const background = takeBackgroundMark(process.env)
  if (background === undefined) {
    const { waitForStopping } = await import('./servers.ts')
    await waitForStopping(tempDirOf(process.env), output)
  }
  if (background === undefined && !flags.foreground) return startInBackground(argv, output, process.env)
  const [{ servingFromFlags }, { serveOnConsole }] = await Promise.all([
    import('./serve.ts'),
    import('./serve.ts'),
  ])
  return serveOnConsole(() => servingFromFlags(flags), loadServer, background)
}
