import { Command } from 'commander'
import { ownVersion } from './archive-stamp.ts'
import { reportPacked, runCommand, splitList } from './command-line.ts'
import { packWorkflow, type WorkflowArchiveOptions } from './pack-workflow.ts'

function command(): Command {
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

await runCommand(async () => {
  reportPacked(await packWorkflow(command().parse(process.argv).opts<WorkflowArchiveOptions>()))
})
