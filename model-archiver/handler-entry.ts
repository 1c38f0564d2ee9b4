import { existsSync, statSync } from 'node:fs'
import { join, sep } from 'node:path'

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
