import { join } from 'node:path'
import { type Command, CommanderError, Option } from 'commander'
import type { ConfigFlags } from '../config/load-settings.ts'
import { docsDir } from '../package-info.ts'
import type { Output } from './output.ts'
import { newCommand } from './run-command.ts'

/** The parsed command line. */
export interface CliFlags extends ConfigFlags {
  version?: boolean
  start?: boolean
  stop?: boolean
  foreground?: boolean
  wait?: boolean
  checkConfig?: boolean
  checkArchive?: string
}

const EXAMPLES = `
Commands, each with a --help of its own:
  serve <model>  serve one model in this terminal: a file, folder, URL, or a model of Hugging Face
  init [folder]  make a project with a first handler
  dev [folder]   serve handlers while you write them; each save is loaded
  status         show the running servers with their models, workers and queues
  migrate        check a configuration of TorchServe, and print what its start needs here
  keys           make, list, rotate and revoke API keys

start and stop are the same as --start and --stop; help [command] shows the help of a command.

Examples:
  Serve one model in this terminal, in one command (torchserve-ts serve --help):
    $ torchserve-ts serve model.gguf
  Serve every archive of a folder in this terminal, without tokens:
    $ torchserve-ts --start --foreground --model-store model_store --models all --disable-token-auth
  Serve one model under another name, in the background:
    $ torchserve-ts --start --model-store model_store --models chat=tiny-llama.mar
  Make a project with a first handler (torchserve-ts init --help):
    $ torchserve-ts init my-model --template text-stream
  Serve a folder of handlers while you write them (torchserve-ts dev --help):
    $ torchserve-ts dev my-model
  Stop the server of this folder; show all that run:
    $ torchserve-ts --stop
    $ torchserve-ts status
  Check a configuration:
    $ torchserve-ts --check-config --ts-config config.properties
  Check whether an archive of TorchServe runs here:
    $ torchserve-ts --check-archive model_store/mnist.mar
  Make an API key with rights of its own (torchserve-ts keys --help):
    $ torchserve-ts keys add mobile-app --scope inference --models 'llama*' --file keys.json
  Allow clients to register models, with a configuration file:
    $ torchserve-ts --start --ts-config config.properties --enable-model-api

Without --disable-token-auth the server writes its tokens to key_file.json in the working directory.
All commands: ${join(docsDir, 'command-line.md')}; all configuration keys: ${join(docsDir, 'configuration.md')}`

/** A word that names this program: arguments of TorchServe's images begin with it, `torchserve --start`. */
export function isProgram(word: string | undefined): boolean {
  return word === 'torchserve' || word === 'torchserve-ts'
}

/**
 * Parses the command line.
 * @returns the flags, or the exit status when help was printed or a flag is invalid
 */
export function parseFlags(argv: readonly string[], output: Output): CliFlags | number {
  const program = definition(output)
  try {
    program.parse(argv, { from: 'user' })
    const word = program.args.find((each) => !isProgram(each))
    if (word !== undefined) program.error(`'${word}' must follow a flag; models are named with --models`)
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    throw error
  }
  const flags = program.opts<CliFlags>()
  if (flags.version || flags.start || flags.stop || flags.checkConfig || flags.checkArchive !== undefined)
    return flags
  if (startsWithout(flags)) return flags
  program.outputHelp()
  return 0
}

/** As in TorchServe, other flags imply `--start`. */
function startsWithout({ foreground, modelStore, tsConfig, models }: CliFlags): boolean {
  return foreground === true || modelStore !== undefined || tsConfig !== undefined || models !== undefined
}

function definition(output: Output): Command {
  return newCommand('torchserve-ts', output)
    .allowExcessArguments()
    .description('A streaming model server in TypeScript, in the shape of TorchServe')
    .option('-v, --version', 'print the version')
    .option('--start', 'start the server in the background; returns when the start has succeeded or failed')
    .addOption(
      new Option(
        '--stop',
        'stop the server of this folder, or the only one that runs; with --ts-config the one of that file',
      ).conflicts('start'),
    )
    .option('--foreground', 'run in this terminal; Ctrl-C stops the server after running requests finish')
    .option('--wait', 'wait until all models are loaded; status 1 and the cause when one cannot be loaded')
    .addOption(
      new Option(
        '--check-config',
        'print all settings with their sources and check the models, without a start',
      ).conflicts(['start', 'stop']),
    )
    .addOption(
      new Option(
        '--check-archive <file>',
        'report what would run for a .mar, .tar.gz or model folder, what differs from TorchServe, and what is missing here; ' +
          'status 0: it runs, 1: something is missing or there is no such file, 2: it cannot be used',
      ).conflicts(['start', 'stop', 'checkConfig']),
    )
    .option(
      '--ts-config <file>',
      'configuration file (default: config.properties; without it, the settings of the newest snapshot)',
    )
    .option('--model-store <folder>', 'folder of the models; required here or in the configuration')
    .option(
      '--models <models...>',
      'models to load at start, instead of those of the newest snapshot: all, or [name=]location',
    )
    .option(
      '--log-config <file>',
      'YAML or JSON file with level, location, metricsLocation, format (text, json), files',
    )
    .option('--dt, --disable-token-auth', 'serve requests without a token')
    .option('--enable-model-api', 'allow clients to register and unregister models')
    .option('--ncs, --no-config-snapshots', 'do not start from the newest snapshot, and write none')
    .option('--workflow-store <folder>', 'folder of the workflow archives (default: the model store)')
    .option('--ppath, --plugins-path <folder>', 'no effect: Java plugins are not supported')
    .option('--cpp-log-config <file>', 'no effect: C++ workers are not supported')
    .addHelpText('after', EXAMPLES)
}
