import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { existsSync } from 'node:fs'
import { ServeError } from '../common/errors.ts'
import { entryNameProblem, shownName } from './entries.ts'
import { DEFAULT_UNPACK_LIMITS } from './unpack-budget.ts'

/** One file of an archive to write. */
export interface ArchiveFile {
  /** Name in the archive, with `/` as separator. */
  readonly name: string
  /** Path of the file to copy, or its content. */
  readonly source: string | Buffer
  readonly executable: boolean
}

const MAX_DEPTH = 32
/** Folders that are never packed, besides hidden ones. */
const LEFT_OUT = new Set(['__MACOSX', '__pycache__'])

/** Collects the files of an archive under the rules for unpacking: safe names, no duplicates. */
export class ArchiveContents {
  /** Possible mistakes that did not stop packing. */
  readonly warnings: string[] = []
  readonly #files = new Map<string, ArchiveFile>()
  readonly #folders = new Set<string>()
  readonly #reserved: string

  /** `reserved`: folder of the manifest. */
  constructor(reserved: 'MAR-INF' | 'WAR-INF' = 'MAR-INF') {
    this.#reserved = reserved
  }

  /** All files, sorted by name. */
  get files(): ArchiveFile[] {
    return [...this.#files.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /**
   * Adds a file to the root of the archive.
   * @param flag command-line flag to name in errors
   * @param name default: the file's own name
   * @returns its name in the archive
   */
  async addFile(path: string, flag: string, name = basename(path)): Promise<string> {
    const stats = await stat(path).catch(() => undefined)
    if (!stats?.isFile()) throw mistake(`${flag}: file not found: ${path}`)
    this.#add({ name, source: await realpath(path), executable: (stats.mode & 0o100) !== 0 })
    return name
  }

  addContent(name: string, content: Buffer): void {
    this.#files.set(name, { name, source: content, executable: false })
  }

  /**
   * Adds files, patterns and folders. A folder's content goes into the root, without caches and hidden
   * folders.
   * @returns the names that this created in the root of the archive, sorted
   */
  async addExtraFiles(patterns: readonly string[], flag: string): Promise<string[]> {
    const names: string[] = []
    for (const pattern of patterns) {
      const paths = await expandGlob(pattern)
      if (paths.length === 0 && !isGlob(pattern)) throw mistake(`${flag}: file not found: ${pattern}`)
      if (paths.length === 0) this.warnings.push(`${flag}: no file matches ${pattern}`)
      for (const path of paths) names.push(...(await this.#addExtra(path, flag)))
    }
    return [...new Set(names)].sort()
  }

  async #addExtra(path: string, flag: string): Promise<string[]> {
    if (!(await stat(path)).isDirectory()) return [await this.addFile(path, flag)]
    const before = new Set(this.#files.keys())
    await this.#addFolder(path, '', flag, 0)
    const added = this.files.map(({ name }) => name)
    return added.filter((name) => !before.has(foldedName(name))).map((name) => name.split('/')[0]!)
  }

  async #addFolder(folder: string, prefix: string, flag: string, depth: number): Promise<void> {
    if (depth > MAX_DEPTH)
      throw mistake(`${flag}: ${folder} is nested too deeply, possibly because of a cyclic link`)
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      const isFolder = (await stat(path).catch(() => undefined))?.isDirectory() === true
      if (isFolder && (LEFT_OUT.has(name) || name.startsWith('.'))) continue
      if (isFolder) await this.#addFolder(path, `${prefix}${name}/`, flag, depth + 1)
      else await this.addFile(path, flag, prefix + name)
    }
  }

  #add(file: ArchiveFile): void {
    const problem = entryNameProblem(file.name)
    if (problem !== undefined) throw mistake(`File ${shownName(file.name)} cannot be packed: ${problem}.`)
    const key = foldedName(file.name)
    if (key.split('/')[0] === this.#reserved.toLowerCase())
      throw mistake(`File ${file.name} cannot be packed: ${this.#reserved} is reserved.`)
    const earlier = this.#files.get(key)
    if (earlier !== undefined && earlier.source !== file.source)
      throw mistake(
        `Two files would have the name ${file.name} in the archive: ${String(earlier.source)} and ${String(file.source)}.`,
      )
    this.#files.set(key, file)
    for (let at = key.lastIndexOf('/'); at > 0; at = key.lastIndexOf('/', at - 1))
      this.#folders.add(key.slice(0, at))
    const { maxFiles } = DEFAULT_UNPACK_LIMITS
    if (this.#files.size + this.#folders.size > maxFiles)
      throw mistake(`The archive must have at most ${maxFiles} files and folders.`)
  }
}

/** Folds names that a case-insensitive disk treats as equal. */
function foldedName(name: string): string {
  return name.normalize('NFC').toLowerCase()
}

/** An error of the archive's author. */
export function mistake(message: string): ServeError {
  return new ServeError('INVALID_ARGUMENT', message)
}

/**
 * Paths that match a pattern of the command line, sorted. `*`, `?` and `[a-z]` match within one path segment,
 * as in Python's glob, which torch-model-archiver uses. A path that exists matches only itself.
 */
export async function expandGlob(pattern: string): Promise<string[]> {
  if (!isGlob(pattern) || existsSync(pattern)) return existsSync(pattern) ? [pattern] : []
  const parts = pattern.split('/')
  let found = [parts[0] === '' ? '/' : '']
  for (const part of parts[0] === '' ? parts.slice(1) : parts)
    found = (await Promise.all(found.map((folder) => matches(folder, part)))).flat()
  return found.sort()
}

async function matches(folder: string, part: string): Promise<string[]> {
  if (!isGlob(part)) {
    const path = join(folder, part)
    return existsSync(path) ? [path] : []
  }
  const pattern = toRegExp(part)
  const names = await readdir(folder === '' ? '.' : folder).catch(() => [])
  return names
    .filter((name) => pattern.test(name) && (part.startsWith('.') || !name.startsWith('.')))
    .map((name) => join(folder, name))
}

/** Whether the text contains pattern characters. */
function isGlob(text: string): boolean {
  return /[*?[]/.test(text)
}

function toRegExp(part: string): RegExp {
  const source = part.replace(/\*+|\?|\[(!?)([^\]]+)\]|[^*?[]+|\[/g, (piece, not: string, set: string) => {
    if (piece.startsWith('*')) return '.*'
    if (piece === '?') return '.'
    if (set !== undefined) return `[${not === '!' ? '^' : ''}${set.replace(/[\\^[]/g, '\\$&')}]`
    return piece.replace(/[\\^$.|+()[\]{}]/g, '\\$&')
  })
  return new RegExp(`^${source}$`, 's')
}
