import { ServeError } from '../common/errors.ts'
import { LIMIT_KEYS, RATIO_FREE_BYTES, type UnpackLimits } from './unpack-limits.ts'

/** How often the disk is looked at while files are written. */
const LOOK_EVERY_BYTES = 16 * 1024 ** 2
/** What a file takes of a disk at least. */
const BLOCK_BYTES = 4096

/** What one archive has used of its limits. Every refusal is INVALID_ARCHIVE and names the limit and its key. */
export class UnpackBudget {
  readonly #limits: UnpackLimits
  readonly #maxInflated: number
  readonly #freeBytes: () => Promise<number>
  #declared = 0
  #inflated = 0
  /** What may be written before the disk is looked at again. */
  #looked = 0

  /**
   * @param archiveBytes size of the archive itself
   * @param freeBytes what is free on the disk now
   */
  constructor(limits: UnpackLimits, archiveBytes: number, freeBytes: () => Promise<number>) {
    this.#limits = limits
    this.#maxInflated = Math.max(RATIO_FREE_BYTES, archiveBytes * limits.maxRatio)
    this.#freeBytes = freeBytes
  }

  /** That the archive has so many files and folders. */
  count(files: number): void {
    const { maxFiles } = this.#limits
    if (files > maxFiles)
      throw over(`The archive has more than ${maxFiles} files and folders`, LIMIT_KEYS.maxFiles)
  }

  /** That a file of so many bytes comes next: refused before anything of it is written. */
  declare(bytes: number): void {
    const { maxBytes } = this.#limits
    this.#declared += bytes
    if (!(this.#declared <= maxBytes))
      throw over(`The archive unpacks to more than ${maxBytes} bytes`, LIMIT_KEYS.maxBytes)
    this.#checkRatio(this.#declared)
  }

  /** That so many bytes came out, whether of files or of what stands between them. */
  inflate(bytes: number): void {
    this.#inflated += bytes
    this.#checkRatio(this.#inflated)
  }

  /** Sees that the disk has room for a file. @param bytes of the whole file */
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
        `The disk would have fewer than ${minFreeBytes} bytes free with what the archive unpacks to; make room`,
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

/** The one shape of such a message. */
export function overLimit(what: string, key: string, change: 'raise' | 'lower' = 'raise'): string {
  return `${what}. If you trust it, ${change} ${key} in the configuration.`
}
