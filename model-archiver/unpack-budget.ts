import { ServeError } from '../common/errors.ts'

/** Interval of the checks for disk space while files are written. */
const LOOK_EVERY_BYTES = 16 * 1024 ** 2
/** Minimum disk space of a file. */
const BLOCK_BYTES = 4096

/** Usage of one archive's limits. Every refusal is INVALID_ARCHIVE with the limit. */
export class UnpackBudget {
  readonly #limits: UnpackLimits
  readonly #maxInflated: number
  readonly #freeBytes: () => Promise<number>
  #declared = 0
  #inflated = 0
  /** Bytes that may be written before the next check of the disk. */
  #looked = 0

  /**
   * @param archiveBytes size of the archive
   * @param freeBytes returns the free bytes of the disk
   */
  constructor(limits: UnpackLimits, archiveBytes: number, freeBytes: () => Promise<number>) {
    this.#limits = limits
    this.#maxInflated = Math.max(RATIO_FREE_BYTES, archiveBytes * limits.maxRatio)
    this.#freeBytes = freeBytes
  }

  /** Checks the number of files and folders so far. */
  count(files: number): void {
    const { maxFiles } = this.#limits
    if (files > maxFiles)
      throw over(`The archive has more than ${maxFiles} files and folders`, raise('max_archive_files'))
  }

  /** Checks a file's declared size before any of it is written. */
  declare(bytes: number): void {
    const { maxBytes } = this.#limits
    this.#declared += bytes
    if (!(this.#declared <= maxBytes))
      throw over(`The archive unpacks to more than ${maxBytes} bytes`, raise('max_unpacked_size'))
    this.#checkRatio(this.#declared)
  }

  /** Adds bytes that were decompressed, of files and of what is between them. */
  inflate(bytes: number): void {
    this.#inflated += bytes
    this.#checkRatio(this.#inflated)
  }

  /** Checks that the disk has room for a file. @param bytes of the whole file */
  async reserve(bytes: number): Promise<void> {
    const needed = Math.max(bytes, BLOCK_BYTES)
    if (needed > this.#looked) await this.#look(needed)
    this.#looked -= Math.min(needed, this.#looked)
  }

  async #look(needed: number): Promise<void> {
    const { minFreeBytes } = this.#limits
    const left = (await this.#freeBytes()) - needed
    if (left < minFreeBytes)
      throw over(
        `The disk must keep ${minFreeBytes} bytes free while the archive is unpacked; free some space`,
        'lower min_free_disk in the configuration',
      )
    this.#looked = needed + Math.min(LOOK_EVERY_BYTES, left - minFreeBytes)
  }

  #checkRatio(bytes: number): void {
    const { maxRatio } = this.#limits
    if (bytes > this.#maxInflated)
      throw over(`The archive unpacks to more than ${maxRatio} times its size`, USE_FOLDER)
  }
}

/** For what no key limits. */
export const USE_FOLDER = 'unpack it yourself and load the folder'

function raise(key: string): string {
  return `raise ${key} in the configuration`
}

/** The error about an archive that exceeds a limit. @param advice what the operator can do */
export function over(what: string, advice: string): ServeError {
  return new ServeError('INVALID_ARCHIVE', `${what}. If you trust it, ${advice}.`)
}

/** Limits for unpacking one archive. */
export interface UnpackLimits {
  /** Maximum files and folders, including folders that only appear in names of entries. Default 10,000. */
  readonly maxFiles: number
  /** Maximum bytes of all files together. Default 20 GiB. */
  readonly maxBytes: number
  /** Maximum bytes unpacked per byte of the archive; the first RATIO_FREE_BYTES are exempt. Default 100. */
  readonly maxRatio: number
  /** Seconds for the whole archive. Default 600. */
  readonly timeout: number
  /** Bytes that must stay free on the disk. Default 256 MiB. */
  readonly minFreeBytes: number
}

export const DEFAULT_UNPACK_LIMITS: UnpackLimits = {
  maxFiles: 10_000,
  maxBytes: 20 * 1024 ** 3,
  maxRatio: 100,
  timeout: 600,
  minFreeBytes: 256 * 1024 ** 2,
}

/** Bytes exempt from the ratio: small text files and weights of zeros compress well. */
export const RATIO_FREE_BYTES = 16 * 1024 ** 2
