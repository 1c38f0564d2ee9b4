import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { makeFolder } from '../common/files.ts'
import { nameProblem } from '../common/names.ts'
import { createdOn, ownVersion } from './package-root.ts'
import { ArchiveContents, mistake } from './contents.ts'
import { MODEL_NAME } from './model-names.ts'
import { type PackResult, handlerRuntime, packHandler } from './pack.ts'
import { WORKFLOW_MANIFEST_PATH, type WorkflowManifest } from './workflow-manifest.ts'
import { parseWorkflowSpec } from './workflow-spec.ts'
import { writeArchive } from './write-archive.ts'

/** Options of torch-workflow-archiver. Paths may be relative to the working directory. */
export interface WorkflowArchiveOptions {
  readonly workflowName: string
  /** YAML file with models and graph. */
  readonly specFile: string
  /**
   * Module with the functions: TypeScript or JavaScript (bundled), or Python. Required if the graph has
   * functions.
   */
  readonly handler?: string
  /** Files, patterns and folders; a folder's content goes into the root of the archive. */
  readonly extraFiles?: readonly string[]
  /** Output folder, made if needed. Default: the working directory. */
  readonly exportPath?: string
  /** Whether to replace an existing archive. Default false. */
  readonly force?: boolean
  /** Packages to leave outside the bundle, besides the native ones, which are detected. */
  readonly external?: readonly string[]
}

/**
 * Packs a workflow into NAME.war.
 * @throws ServeError INVALID_ARGUMENT for invalid options, INVALID_WORKFLOW and INVALID_DAG for an invalid
 *   specification, INVALID_MODEL for a handler that cannot be bundled
 */
export async function packWorkflow(options: WorkflowArchiveOptions): Promise<PackResult> {
  if (!MODEL_NAME.test(options.workflowName))
    throw mistake(
      `Workflow name contains special characters. The allowed regular expression is ${MODEL_NAME.source}`,
    )
  const problem = nameProblem('Workflow name', options.workflowName)
  if (problem !== undefined) throw mistake(problem)
  const exportPath = resolve(options.exportPath ?? '.')
  const path = join(exportPath, `${options.workflowName}.war`)
  if (existsSync(path) && options.force !== true)
    throw mistake(`${path} already exists. Please specify --force/-f option to overwrite it.`)
  const buildDir = await mkdtemp(join(tmpdir(), 'torch-workflow-archiver-'))
  try {
    const contents = new ArchiveContents('WAR-INF')
    const { manifest, ...bundle } = await collect(options, contents, buildDir)
    contents.addContent(WORKFLOW_MANIFEST_PATH, Buffer.from(`${JSON.stringify(manifest, undefined, 2)}\n`))
    await makeFolder(exportPath)
    await writeArchive(contents.files, path, 'default')
    return { path, ...bundle }
  } finally {
    await rm(buildDir, { recursive: true, force: true })
  }
}

async function collect(
  { workflowName, specFile: spec, handler: given, extraFiles, external }: WorkflowArchiveOptions,
  contents: ArchiveContents,
  buildDir: string,
): Promise<Omit<PackResult, 'path'> & { manifest: WorkflowManifest }> {
  const specFile = await contents.addFile(spec, '--spec-file')
  await checkSpec(spec, given)
  if (extraFiles !== undefined) await contents.addExtraFiles(extraFiles, '--extra-files')
  const { handler, ...bundle } =
    given === undefined
      ? { handler: undefined, externals: [], warnings: [] }
      : await packHandler(given, handlerRuntime(given), contents, buildDir, external)
  const workflow = { workflowName, specFile, handler }
  return { manifest: { createdOn: createdOn(), workflow, archiverVersion: ownVersion() }, ...bundle }
}

/** Finds errors in the specification now, instead of when the archive is registered. */
async function checkSpec(path: string, handler: string | undefined): Promise<void> {
  const { nodes } = await parseWorkflowSpec(await readFile(path, 'utf8'))
  const functions = [...nodes.values()].filter(({ url }) => url === undefined).map(({ name }) => name)
  if (functions.length > 0 && handler === undefined)
    throw mistake(`--handler is required: ${functions.join(', ')} must be its functions.`)
}
