import { ServeError } from '../common/errors.ts'
import { entryNameProblem, shownName } from './entry-names.ts'

/** How much one archive may unpack to. */
export interface UnpackLimits {
  /** Files and folders. Default 10,000. */
  readonly maxFiles: number
  /** Bytes of all files together. Default 20 GiB. */
  readonly maxBytes: number
}

export const DEFAULT_UNPACK_LIMITS: UnpackLimits = { maxFiles: 10_000, maxBytes: 20 * 1024 ** 3 }

/**
 * Decides entry by entry whether an archive may be unpacked: safe names, no file twice (names that differ only by letter
 * case are the same), no more files or bytes than the limits.
 */
export class EntryGuard {
  readonly #limits: UnpackLimits
  /** Folded path -> how it was spelled, and whether it is a file. Folders that were only implied are here too. */
  readonly #seen = new Map<string, { spelled: string; file: boolean }>()
  #bytes = 0
  #entries = 0

  constructor(limits: UnpackLimits) {
    this.#limits = limits
  }

  /**
   * Lets an entry in.
   * @param bytes the size that the archive declares for it
   * @throws ServeError INVALID_ARCHIVE that names the entry
   */
  admit(name: string, kind: 'file' | 'folder', bytes: number): void {
    const problem = entryNameProblem(name)
    if (problem !== undefined) throw refusedEntry(name, problem)
    this.#count(name, bytes)
    const parts = name.replace(/\/$/, '').split('/')
    for (let depth = 1; depth < parts.length; depth++)
      this.#occupy(name, parts.slice(0, depth).join('/'), false)
    this.#occupy(name, parts.join('/'), kind === 'file')
  }

  #count(name: string, bytes: number): void {
    this.#entries += 1
    if (this.#entries > this.#limits.maxFiles)
      throw new ServeError('INVALID_ARCHIVE', `The archive has more than ${this.#limits.maxFiles} files.`)
    this.#bytes += bytes
    if (!(this.#bytes <= this.#limits.maxBytes))
      throw refusedEntry(
        name,
        `with it the archive unpacks to more than ${this.#limits.maxBytes} bytes, the limit`,
      )
  }

  #occupy(entry: string, path: string, file: boolean): void {
    const folded = path.normalize('NFC').toLowerCase()
    const earlier = this.#seen.get(folded)
    if (earlier === undefined) this.#seen.set(folded, { spelled: path, file })
    else if (earlier.spelled !== path)
      throw refusedEntry(entry, `it differs only by letter case from ${shownName(earlier.spelled)}`)
    else if (earlier.file || file) throw refusedEntry(entry, 'the archive has that name twice')
  }
}

/** The one shape of refusal: `Archive entry "x" is refused: <problem>.` */
export function refusedEntry(name: string, problem: string): ServeError {
  return new ServeError('INVALID_ARCHIVE', `Archive entry ${shownName(name)} is refused: ${problem}.`)
}
