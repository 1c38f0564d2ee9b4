import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { ServeError } from '../common/errors.ts'
import type { ArchiveIdentity } from './hashed-file.ts'
import { compileHandler } from './bundle.ts'
import { findScript, inside } from './handler-entry.ts'
import { readSmallFile } from './manifest.ts'
import { linkingModules, packageRoot } from './package-root.ts'
import { Reach } from './reach.ts'
import { unpackArchive, type UnpackOptions } from './unpack.ts'
import type { WorkflowManifest } from './workflow-manifest.ts'
import { parseWorkflowSpec, type WorkflowSpec } from './workflow-spec.ts'
import { createWorkspace } from './workspace.ts'

const MAX_TEXT_BYTES = 1024 * 1024

/** Runtime of a workflow's functions. */
export type WorkflowFunctions =
  /** One module for all functions: see functionsModule. */
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

/** Request header with the name of the node whose function to call. */
export const FUNCTION_HEADER = 'ts_workflow_function'

/**
 * Source of a handler module that serves all functions of a workflow's handler in one worker: it calls the
 * function that the request's header names. Runs the handler's hooks `initialize` and `shutdown` unless they
 * are nodes themselves.
 * @param handler path of the workflow's handler beside this module: JavaScript that Node can import. Imported
 *   at run time, because one bundle must not contain another
 * @param names the functions; the worker checks that they exist when it loads the module
 */
function functionsModule(handler: string, names: readonly string[]): string {
  return `const names = ${JSON.stringify(names)}

function hook(name) {
  return names.includes(name) ? undefined : exported[name]
}

let exported = {}

export async function initialize(context) {
  const module = await import(new URL(${JSON.stringify(handler)}, import.meta.url).href)
  exported = { ...module.default, ...module }
  const missing = names.filter((name) => typeof exported[name] !== 'function')
  if (missing.length > 0) throw new Error('The workflow handler exports no function ' + missing.join(', '))
  await hook('initialize')?.(context)
}

export function handle(requests, context) {
  return exported[context.requestHeader(0, ${JSON.stringify(FUNCTION_HEADER)})](requests, context)
}

export async function shutdown() {
  await hook('shutdown')?.()
}
`
}
