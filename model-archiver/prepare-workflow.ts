import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ServeError } from '../common/errors.ts'
import type { ArchiveIdentity } from './archive-identity.ts'
import { compileHandler } from './bundle.ts'
import { findScript, inside } from './handler-entry.ts'
import { readSmallFile } from './manifest.ts'
import { linkingModules, packageRoot } from './package-root.ts'
import { Reach } from './reach.ts'
import { unpackArchive, type UnpackOptions } from './unpack.ts'
import { functionsModule } from './workflow-functions.ts'
import type { WorkflowManifest } from './workflow-manifest.ts'
import { parseWorkflowSpec, type WorkflowSpec } from './workflow-spec.ts'
import { createWorkspace } from './workspace.ts'

const MAX_TEXT_BYTES = 1024 * 1024

/** Runtime of a workflow's functions. */
export type WorkflowFunctions =
  /** One module for all functions: see workflow-functions.ts. */
  | { readonly kind: 'module'; readonly file: string; readonly names: readonly string[] }
  /** Python: one model per function, with the handler `file:function`. */
  | { readonly kind: 'python'; readonly file: string; readonly names: readonly string[] }

/** An unpacked workflow archive. */
export interface PreparedWorkflow {
  /** Name from the manifest. */
  readonly name: string
  readonly spec: WorkflowSpec
  readonly archive: ArchiveIdentity
  /** Absolute path of the unpacked files. */
  readonly folder: string
  /** Undefined when every node is a model. */
  readonly functions: WorkflowFunctions | undefined
  /** The temporary folder; `dispose` removes it. */
  readonly workDir: string
  dispose(): Promise<void>
}

/**
 * Unpacks and reads a workflow archive (.war), with the limits for model archives.
 * @param archive absolute path of the file
 * @throws ServeError UNTRUSTED_ARCHIVE, INVALID_ARCHIVE, INVALID_WORKFLOW, INVALID_DAG, CONFIG,
 *   SHUTTING_DOWN; cleans up first
 */
export async function prepareWorkflow(
  archive: string,
  tempDir: string,
  options: UnpackOptions = {},
): Promise<PreparedWorkflow> {
  const root = packageRoot()
  const workspace = await createWorkspace(tempDir, root, linkingModules(root))
  try {
    const folder = join(workspace.place, 'workflow')
    const identity = await unpackArchive(archive, folder, options)
    // On demand: a start without workflows needs no zod.
    const { checkWorkflowManifest, WORKFLOW_MANIFEST_PATH } = await import('./workflow-manifest.ts')
    const { workflow } = checkWorkflowManifest(await readText(folder, WORKFLOW_MANIFEST_PATH))
    const spec = await parseWorkflowSpec(await specText(folder, workflow))
    const functions = await prepareFunctions(folder, workflow, spec)
    const { root: workDir, dispose } = workspace
    return { name: workflow.workflowName, spec, archive: identity, folder, functions, workDir, dispose }
  } catch (error) {
    await workspace.dispose()
    throw error
  }
}

async function specText(folder: string, { specFile }: WorkflowManifest['workflow']): Promise<string> {
  const text = await readText(folder, specFile)
  if (text === undefined) throw invalid(`Workflow specification ${specFile} is missing in the archive.`)
  return text
}

function readText(folder: string, name: string): Promise<string | undefined> {
  const path = inside(folder, name)
  return path === undefined ? Promise.resolve(undefined) : readSmallFile(path, MAX_TEXT_BYTES)
}

async function prepareFunctions(
  folder: string,
  { handler }: WorkflowManifest['workflow'],
  { nodes }: WorkflowSpec,
): Promise<WorkflowFunctions | undefined> {
  const names = [...nodes.values()].filter(({ url }) => url === undefined).map(({ name }) => name)
  if (names.length === 0) return undefined
  if (!handler) throw invalid(`The workflow must have a handler with the functions ${names.join(', ')}.`)
  const script = findScript(folder, handler)
  if (script !== undefined) {
    return { kind: 'module', file: await writeFunctions(folder, script, names), names }
  }
  const python = inside(folder, handler)
  if (python !== undefined && handler.endsWith('.py') && existsSync(python))
    return { kind: 'python', file: handler, names }
  throw invalid(`Workflow handler ${handler} is missing in the archive.`)
}

/** @returns the name of the module, which is in the archive's folder so that it finds the packages there */
async function writeFunctions(folder: string, script: string, names: readonly string[]): Promise<string> {
  const stem = `.functions-${randomBytes(4).toString('hex')}`
  const ready = /\.[mc]js$/.test(script)
  const handler = ready ? script : join(folder, `${stem}-handler.mjs`)
  if (!ready) await compileHandler(script, handler, Reach.ofArchive(folder))
  const path = `./${relative(folder, handler).split(sep).map(encodeURIComponent).join('/')}`
  await writeFile(join(folder, `${stem}.mjs`), functionsModule(path, names), { flag: 'wx' })
  return `${stem}.mjs`
}

function invalid(message: string): ServeError {
  return new ServeError('INVALID_WORKFLOW', message)
}
