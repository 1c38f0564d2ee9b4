import { ServeError } from '../common/errors.ts'
import { LIMIT_KEYS, RATIO_FREE_BYTES, type UnpackLimits } from './unpack-limits.ts'

/** Interval of the checks for disk space while files are written. */
const LOOK_EVERY_BYTES = 16 * 1024 ** 2
/** Minimum disk space of a file. */
const BLOCK_BYTES = 4096

/** Usage of one archive's limits. Every refusal is INVALID_ARCHIVE with the limit and its key. */
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
      throw over(`The archive has more than ${maxFiles} files and folders`, LIMIT_KEYS.maxFiles)
  }

  /** Checks a file's declared size before any of it is written. */
  declare(bytes: number): void {
    const { maxBytes } = this.#limits
    this.#declared += bytes
    if (!(this.#declared <= maxBytes))
      throw over(`The archive unpacks to more than ${maxBytes} bytes`, LIMIT_KEYS.maxBytes)
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
        LIMIT_KEYS.minFreeBytes,
        'lower',
      )
    this.#looked = needed + Math.min(LOOK_EVERY_BYTES, left - minFreeBytes)
  }

  #checkRatio(bytes: number): void {
    const { maxRatio } = this.#limits
    if (bytes > this.#maxInflated)
      throw over(`The archive unpacks to more than ${maxRatio} times its size`, LIMIT_KEYS.maxRatio)
  }
}

function over(what: string, key: string, change: 'raise' | 'lower' = 'raise'): ServeError {
  return new ServeError('INVALID_ARCHIVE', overLimit(what, key, change))
}

/** The format of every such message. */
export function overLimit(what: string, key: string, change: 'raise' | 'lower' = 'raise'): string {
  return `${what}. If you trust it, ${change} ${key} in the configuration.`
}
