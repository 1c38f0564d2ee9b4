import { Command, Option } from 'commander'
import { escapeControls } from '../common/texts.ts'
import { splitList } from '../common/names.ts'
import { type PackResult, packModel } from './pack.ts'
import { ownVersion } from './package-root.ts'
import { RUNTIMES, type Runtime } from './handler-entry.ts'
import { ARCHIVE_FORMATS, type ArchiveFormat } from './write-archive.ts'
import { packWorkflow, type WorkflowArchiveOptions } from './pack-workflow.ts'

/** Prints the archive's path and notes for its user. */
function reportPacked({ path, externals, warnings }: PackResult): void {
  for (const warning of warnings) console.error(`warning: ${oneLine(warning)}`)
  console.log(`Wrote ${escapeControls(path)}`)
  if (externals.length > 0)
    console.log(
      `Not in the archive, to be installed where it is served: ${escapeControls(externals.join(', '))}`,
    )
}

/** Reports every error as one line on stderr and exit code 1. */
async function runCommand(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (error) {
    console.error(`error: ${oneLine(error instanceof Error ? error.message : String(error))}`)
    process.exitCode = 1
  }
}

function oneLine(text: string): string {
  return escapeControls(text.replace(/\s*\n\s*/g, ' '))
}

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

function modelCommand(): Command {
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

/** The command `torch-model-archiver-ts`. */
export function runModelArchiver(): Promise<void> {
  return runCommand(async () => {
    // TorchServe's flag for the model's version is what other commands have for their own.
    const [flag, ...others] = process.argv.slice(2)
    if (others.length === 0 && (flag === '--version' || flag === '-v')) return console.log(ownVersion())
    reportPacked(await packModel(modelCommand().parse(process.argv).opts<Flags>()))
  })
}

function workflowCommand(): Command {
  return new Command('torch-workflow-archiver-ts')
    .description(
      'Packs a workflow, its specification and its functions, into an archive for a workflow store.',
    )
    .requiredOption('--workflow-name <name>', 'name of the workflow and of the archive')
    .requiredOption('--spec-file <file>', 'YAML file with the models and the graph of the workflow')
    .option('--handler <file>', 'the functions of the workflow: TypeScript or JavaScript, bundled; or Python')
    .option('--extra-files <list>', 'files, patterns and folders, separated by commas', splitList)
    .option('--export-path <folder>', 'where to write the archive (default: the current folder)')
    .option('-f, --force', 'replace an archive that is there')
    .option('--external <list>', 'packages to leave outside the bundle, separated by commas', splitList)
    .version(ownVersion(), '-v, --version', 'print the version')
    .helpOption('-h, --help', 'show this help')
    .showSuggestionAfterError(false)
    .allowExcessArguments(false)
}

/** The command `torch-workflow-archiver-ts`. */
export function runWorkflowArchiver(): Promise<void> {
  return runCommand(async () => {
    reportPacked(await packWorkflow(workflowCommand().parse(process.argv).opts<WorkflowArchiveOptions>()))
  })
}
