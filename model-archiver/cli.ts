#!/usr/bin/env node
import { Command, Option } from 'commander'
import { type ArchiveOptions, packModel } from './pack.ts'
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
    .requiredOption('-v, --version <version>', 'version of the model')
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

function splitList(text: string): string[] {
  return text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '')
}

async function main(argv: readonly string[]): Promise<void> {
  const options: ArchiveOptions = command().parse(argv).opts<Flags>()
  const { path, externals, warnings } = await packModel(options)
  for (const warning of warnings) console.error(`warning: ${oneLine(warning)}`)
  console.log(`Wrote ${path}`)
  if (externals.length > 0)
    console.log(`Not in the archive, to be installed where it is served: ${externals.join(', ')}`)
}

function oneLine(text: string): string {
  return text.replace(/\s*\n\s*/g, ' ')
}

try {
  await main(process.argv)
} catch (error) {
  console.error(`error: ${oneLine(error instanceof Error ? error.message : String(error))}`)
  process.exitCode = 1
}
