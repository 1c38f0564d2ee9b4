import { Command, CommanderError, Option } from 'commander'
import type { ConfigFlags } from '../config/load-settings.ts'
import type { Output } from './output.ts'

/** What the command line says. */
export interface CliFlags extends ConfigFlags {
  version?: boolean
  start?: boolean
  stop?: boolean
  foreground?: boolean
}

const EXAMPLES = `
Examples:
  Serve every archive of a folder, in this terminal, without tokens:
    $ torchserve-ts --start --foreground --model-store model_store --models all --disable-token-auth
  Serve one model under a name of your own, in the background:
    $ torchserve-ts --start --model-store model_store --models chat=tiny-llama.mar
  Stop what runs in the background:
    $ torchserve-ts --stop
  Let models be registered while the server runs, with a configuration file:
    $ torchserve-ts --start --ts-config config.properties --enable-model-api

Without --disable-token-auth the server writes its tokens to key_file.json in the working directory.
All configuration keys: docs/configuration.md`

/**
 * Reads the command line.
 * @returns the flags, or the exit status when there is nothing more to do (help was printed, or a mistake)
 */
export function parseFlags(argv: readonly string[], output: Output): CliFlags | number {
  const program = definition().configureOutput({
    writeOut: (text) => output.out(text.trimEnd()),
    writeErr: (text) => output.err(`torchserve-ts: ${text.trim().replace(/\s*\n\s*/g, ' ')}`),
  })
  try {
    program.parse(argv, { from: 'user' })
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode
    throw error
  }
  const flags = program.opts<CliFlags>()
  if (flags.version || flags.start || flags.stop) return flags
  program.outputHelp()
  return 0
}

function definition(): Command {
  return new Command('torchserve-ts')
    .description('A streaming model server in TypeScript, in the shape of TorchServe')
    .exitOverride()
    .option('-v, --version', 'print the version')
    .option('--start', 'start the server; returns when it has started, or failed with its reason')
    .addOption(new Option('--stop', 'stop the server that runs in the background').conflicts('start'))
    .option('--foreground', 'keep the server in this terminal; Ctrl-C lets requests finish and ends it')
    .option('--ts-config <file>', 'configuration file (default: config.properties, if it is there)')
    .option('--model-store <folder>', 'where the models are; mandatory here or in the configuration')
    .option('--models <models...>', 'models to load at start: all, or [name=]location')
    .option(
      '--log-config <file>',
      'YAML or JSON with level, location, metricsLocation, format (text, json), files',
    )
    .option('--dt, --disable-token-auth', 'serve without tokens')
    .option('--enable-model-api', 'let models be registered and unregistered while the server runs')
    .option('--ncs, --no-config-snapshots', 'no snapshots; they come later, so there are none yet')
    .option('--workflow-store <folder>', 'where workflow archives are (default: the model store)')
    .option('--ppath, --plugins-path <folder>', 'no effect: plugins are Java classes')
    .option('--cpp-log-config <file>', 'no effect: there are no C++ workers')
    .addHelpText('after', EXAMPLES)
}
