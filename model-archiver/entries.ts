import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { INVISIBLE, quoted } from '../common/texts.ts'
import { ServeError } from '../common/errors.ts'
import type { UnpackBudget } from './unpack-budget.ts'

/**
 * Names allowed in archives. Such a name stays inside the folder it is unpacked into, on every platform, and
 * means the same file on case-sensitive and case-insensitive disks.
 */

const MAX_NAME_BYTES = 1024
const MAX_PART_BYTES = 255
const MAX_DEPTH = 64

/** Device names of Windows, with any extension. */
const DEVICE = /^(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)( *\..*)?$/i

/** How the refusal of a name ends. */
export const INVISIBLE_NAME = 'the name has control characters or marks of direction'

/**
 * Why an entry's name is refused, as the end of a sentence; undefined when it is safe.
 * @param name as in the archive, with `/` as separator; a trailing `/` marks a folder
 */
export function entryNameProblem(name: string): string | undefined {
  if (name === '') return 'the name is empty'
  if (INVISIBLE.test(name)) return INVISIBLE_NAME
  if (name.includes('\\')) return 'the name has a backslash'
  if (name.startsWith('/')) return 'the name is absolute'
  if (/^[a-z]:/i.test(name)) return 'the name starts with a drive'
  if (name.includes(':')) return 'the name has a colon'
  if (Buffer.byteLength(name) > MAX_NAME_BYTES) return `the name is longer than ${MAX_NAME_BYTES} bytes`
  const parts = name.replace(/\/$/, '').split('/')
  if (parts.length > MAX_DEPTH) return `the name is deeper than ${MAX_DEPTH} folders`
  for (const part of parts) {
    const problem = partProblem(part)
    if (problem !== undefined) return problem
  }
  return undefined
}

function partProblem(part: string): string | undefined {
  if (part === '') return 'a part of the name is empty'
  if (part === '..') return 'the name leads out of the archive (..)'
  if (part === '.') return 'a part of the name is a dot'
  // Windows drops trailing dots and spaces, so two names would become one.
  if (/[. ]$/.test(part)) return 'a part of the name ends in a dot or a space'
  if (DEVICE.test(part)) return 'the name is a device name'
  if (Buffer.byteLength(part) > MAX_PART_BYTES)
    return `a part of the name is longer than ${MAX_PART_BYTES} bytes`
  return undefined
}

/** A name for messages. */
export function shownName(name: string): string {
  return quoted(name, 200)
}

/**
 * Decides for each entry whether it may be unpacked: safe names, no duplicates (ignoring letter case), and no
 * more files or bytes than the limits.
 */
export class EntryGuard {
  readonly #budget: UnpackBudget
  /**
   * Folded path -> its spelling, and whether it is a file. Includes folders that only appear in names of
   * entries.
   */
  readonly #seen = new Map<string, { spelled: string; file: boolean }>()
  #entries = 0

  constructor(budget: UnpackBudget) {
    this.#budget = budget
  }

  /**
   * Admits an entry.
   * @param bytes size that the archive declares for it
   * @throws ServeError INVALID_ARCHIVE with the entry or the exceeded limit
   */
  admit(name: string, kind: 'file' | 'folder', bytes: number): void {
    const problem = entryNameProblem(name)
    if (problem !== undefined) throw refusedEntry(name, problem)
    this.#budget.count(++this.#entries)
    this.#budget.declare(bytes)
    const parts = name.replace(/\/$/, '').split('/')
    for (let depth = 1; depth < parts.length; depth++)
      this.#occupy(name, parts.slice(0, depth).join('/'), false)
    this.#occupy(name, parts.join('/'), kind === 'file')
  }

  #occupy(entry: string, path: string, file: boolean): void {
    const folded = path.normalize('NFC').toLowerCase()
    const earlier = this.#seen.get(folded)
    if (earlier === undefined) {
      this.#seen.set(folded, { spelled: path, file })
      this.#budget.count(this.#seen.size)
    } else if (earlier.spelled !== path)
      throw refusedEntry(entry, `it differs only by letter case from ${shownName(earlier.spelled)}`)
    else if (earlier.file || file) throw refusedEntry(entry, 'the archive has that name twice')
  }
}

/** The format of every refusal: `Archive entry "x" is refused: <problem>.` */
export function refusedEntry(name: string, problem: string): ServeError {
  return new ServeError('INVALID_ARCHIVE', `Archive entry ${shownName(name)} is refused: ${problem}.`)
}

/**
 * Writes admitted entries below one folder. Creates every file anew: never follows or overwrites existing
 * ones.
 */
export class EntryWriter {
  readonly #root: string
  readonly #budget: UnpackBudget
  readonly #made = new Set<string>()

  constructor(root: string, budget: UnpackBudget) {
    this.#root = root
    this.#budget = budget
  }

  /** Makes missing folders one by one: `recursive` would recreate a root that is being removed. */
  async folder(name: string): Promise<void> {
    const parts = name.replace(/\/$/, '').split('/')
    for (let depth = 1; depth <= parts.length; depth++) {
      const path = parts.slice(0, depth).join('/')
      if (this.#made.has(path)) continue
      await mkdir(join(this.#root, path))
      this.#made.add(path)
    }
  }

  /**
   * Writes a file.
   * @param mode as in the archive; only its executable bits are kept
   * @param bytes as the archive declares them; `content` has no more
   */
  async file(name: string, mode: number, bytes: number, content: AsyncIterable<Uint8Array>): Promise<void> {
    const slash = name.lastIndexOf('/')
    if (slash > 0) await this.folder(name.slice(0, slash))
    await this.#budget.reserve(bytes)
    await writeFile(join(this.#root, name), content, {
      flag: 'wx',
      mode: (mode & 0o111) === 0 ? 0o644 : 0o755,
    })
  }
}
