import { ServeError } from '../common/errors.ts'
import { entryNameProblem, shownName } from './entry-names.ts'
import type { UnpackBudget } from './unpack-budget.ts'

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
