import { readdir, realpath, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { ServeError } from '../common/errors.ts'
import { entryNameProblem, shownName } from './entry-names.ts'
import { expandGlob, isGlob } from './glob.ts'
import { DEFAULT_UNPACK_LIMITS } from './unpack-limits.ts'

/** One file of an archive to be written. */
export interface ArchiveFile {
  /** Name in the archive, with `/` between its parts. */
  readonly name: string
  /** The file to copy, or the content itself. */
  readonly source: string | Buffer
  readonly executable: boolean
}

const MAX_DEPTH = 32
/** Folders that are never packed, hidden ones apart. */
const LEFT_OUT = new Set(['__MACOSX', '__pycache__'])

/** Collects the files of an archive. What it accepts, unpacking accepts: safe names, none twice. */
export class ArchiveContents {
  /** What went on although it may be a mistake. */
  readonly warnings: string[] = []
  readonly #files = new Map<string, ArchiveFile>()
  readonly #folders = new Set<string>()
  readonly #reserved: string

  /** `reserved`: the folder of the manifest. */
  constructor(reserved: 'MAR-INF' | 'WAR-INF' = 'MAR-INF') {
    this.#reserved = reserved
  }

  /** All files, sorted by name. */
  get files(): ArchiveFile[] {
    return [...this.#files.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /**
   * Puts a file into the root of the archive.
   * @param flag names the command line's flag in the message
   * @param name default: its own
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
   * Files, patterns and folders; of a folder its content goes into the root, without caches and hidden folders.
   * @returns the names that this made in the root of the archive, sorted
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
    if (depth > MAX_DEPTH) throw mistake(`${flag}: ${folder} is nested too deeply; does a link lead back?`)
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
      throw mistake(`File ${file.name} cannot be packed: ${this.#reserved} belongs to the archiver.`)
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
      throw mistake(`The archive would have more than ${maxFiles} files and folders.`)
  }
}

/** The same for names that a disk may take for one. */
function foldedName(name: string): string {
  return name.normalize('NFC').toLowerCase()
}

/** A mistake of whoever packs. */
export function mistake(message: string): ServeError {
  return new ServeError('INVALID_ARGUMENT', message)
}
