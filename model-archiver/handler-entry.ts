import { existsSync, statSync, readdirSync } from 'node:fs'
import { join, sep, relative } from 'node:path'
import { readdir } from 'node:fs/promises'
import { GGUF_HANDLER } from './builtin-handlers.ts'
import { ServeError } from '../common/errors.ts'

/** A handler in a manifest or on the command line: `file[.ext][:export]`. */
export interface HandlerEntry {
  /** The file, with or without its extension. */
  readonly file: string
  /** The export that is the handler; absent: the worker finds it. */
  readonly export?: string
}

/** Extensions of JavaScript and TypeScript modules, in the order of lookup. */
const SCRIPT_ENDINGS = ['.ts', '.mts', '.js', '.mjs', '.cjs', '.cts'] as const

/** Splits `handler.ts:Story`. A colon that no identifier follows (a Windows drive) belongs to the path. */
export function parseHandlerEntry(text: string): HandlerEntry {
  const found = /^(.+):([A-Za-z_$][\w$]*)$/.exec(text)
  return found === null ? { file: text } : { file: found[1]!, export: found[2]! }
}

export function formatHandlerEntry(entry: HandlerEntry): string {
  return entry.export === undefined ? entry.file : `${entry.file}:${entry.export}`
}

export function isScript(file: string): boolean {
  return /\.[mc]?[tj]s$/.test(file)
}

/**
 * Finds a file in `folder` by name, with or without a script extension. Ignores names that lead out of
 * `folder`.
 */
export function findScript(folder: string, file: string): string | undefined {
  const path = inside(folder, file)
  if (path === undefined) return undefined
  if (isScript(path) && isFile(path)) return path
  return SCRIPT_ENDINGS.map((ending) => path + ending).find(isFile)
}

/** `folder/name`; undefined if the name leads out of the folder. */
export function inside(folder: string, name: string): string | undefined {
  const path = join(folder, name)
  return name !== '' && !name.includes('\0') && path.startsWith(folder + sep) ? path : undefined
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile()
}

/** What a folder lacks that is no model. */
export const NO_HANDLER =
  'it has no handler.ts (or .js, .mjs, .cjs, .py), .gguf file, model-settings.json or MAR-INF/MANIFEST.json'

/** The folder, or its only subfolder if it contains nothing else, as in SageMaker's model archives. */
export async function modelFolder(folder: string): Promise<string> {
  const [only, ...others] = await readdir(folder, { withFileTypes: true })
  const wrapped = only?.isDirectory() === true && others.length === 0 && only.name !== 'MAR-INF'
  return wrapped ? join(folder, only.name) : folder
}

/**
 * Handler of a model that names none: `handler.` with a script's extension, or `handler.py`; without these,
 * the built-in one of a .gguf file.
 */
export function conventionalHandler(modelDir: string): string | undefined {
  const script = findScript(modelDir, 'handler')
  if (script !== undefined) return relative(modelDir, script)
  if (existsSync(join(modelDir, 'handler.py'))) return 'handler.py'
  return readdirSync(modelDir).some((name) => name.endsWith('.gguf')) ? GGUF_HANDLER : undefined
}

/** The path of a file of this name, or with this end of its path, in any folder of the model. */
export function fileBelow(modelDir: string, end: string): string | undefined {
  const paths = readdirSync(modelDir, { recursive: true, encoding: 'utf8' })
  return paths.find((path) => `${sep}${path}`.endsWith(`${sep}${end}`))
}

/** `node` is ours; the others mean TorchServe's Python or C++ worker. */
export const RUNTIMES = ['node', 'python', 'python3', 'LSP'] as const
export type Runtime = (typeof RUNTIMES)[number]

/** @throws ServeError INVALID_ARGUMENT with TorchServe's message */
export function checkRuntime(text: string): Runtime {
  const runtime = RUNTIMES.find((known) => known === text)
  if (runtime === undefined) throw new ServeError('INVALID_ARGUMENT', `Invalid RuntimeType value: ${text}`)
  return runtime
}
