import { Command, Option } from 'commander'
import { ownVersion } from './archive-stamp.ts'
import { reportPacked, runCommand, splitList } from './command-line.ts'
import { packModel } from './pack.ts'
import { RUNTIMES, type Runtime } from './runtime.ts'
import { ARCHIVE_FORMATS, type ArchiveFormat } from './write-archive.ts'

interface Flags {
  modelName: string
  version: string
  handler: string
  serializedFile?: string
  modelFile?: string
  extraFiles?: string[]
  runtime?: Runtime
  exportPath?: string
  archiveFormat: ArchiveFormat
  force?: boolean
  requirementsFile?: string
  configFile?: string
  external?: string[]
}

function command(): Command {
  return new Command('torch-model-archiver-ts')
    .description('Packs a handler and the files of a model into an archive for a model store.')
    .requiredOption('--model-name <name>', 'name of the model and of the archive')
    .requiredOption(
      '-v, --version <version>',
      'version of the model; alone, it prints the version of this command',
    )
    .requiredOption('--handler <file[:export]>', 'handler: TypeScript or JavaScript, bundled; or Python')
    .option('--serialized-file <file>', 'weights')
    .option('--model-file <file>', 'file with the architecture of the model')
    .option('--extra-files <list>', 'files, patterns and folders, separated by commas', splitList)
    .addOption(
      new Option('--runtime <runtime>', 'default: node, or python for a Python handler').choices(RUNTIMES),
    )
    .option('--export-path <folder>', 'where to write the archive (default: the current folder)')
    .addOption(
      new Option('--archive-format <format>', 'zip (.mar), .tar.gz, folder, or zip without compression')
        .choices(ARCHIVE_FORMATS)
        .default('default'),
    )
    .option('-f, --force', 'replace an archive that is there')
    .option('-r, --requirements-file <file>', 'requirements.txt of a Python handler')
    .option('-c, --config-file <file>', 'model-config.yaml')
    .option('--external <list>', 'packages to leave outside the bundle, separated by commas', splitList)
    .helpOption('-h, --help', 'show this help')
    .showSuggestionAfterError(false)
    .allowExcessArguments(false)
}

await runCommand(async () => {
  // TorchServe's flag for the model's version is what other commands have for their own.
  const [flag, ...others] = process.argv.slice(2)
  if (others.length === 0 && (flag === '--version' || flag === '-v')) return console.log(ownVersion())
  reportPacked(await packModel(command().parse(process.argv).opts<Flags>()))
})
