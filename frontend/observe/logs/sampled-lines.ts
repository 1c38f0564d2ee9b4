import { Allowance } from '../../../common/byte-flow.ts'

/** Lines are written once in this time, in milliseconds. */
const EVERY_MS = 1_000
/** Time after which lines that were left out are told, in milliseconds. */
const TELL_AFTER_MS = 10_000

/** Bounds the lines of one kind that strangers can cause as often as they like; it counts the others. */
export class SampledLines {
  readonly #allowance: Allowance
  readonly #tell: (leftOut: number) => void
  #leftOut = 0
  #timer: NodeJS.Timeout | undefined

  /**
   * @param burst so many at once, then one each second
   * @param tell gets how many were left out, if no line has told it a while later
   */
  constructor(burst: number, tell: (leftOut: number) => void) {
    this.#allowance = new Allowance(EVERY_MS, burst)
    this.#tell = tell
  }

  /** How many were left out before this one, which tells it; undefined: this one is left out, too. */
  next(): number | undefined {
    if (this.#allowance.wait > 0) {
      this.#leftOut += 1
      this.#timer ??= setTimeout(() => this.close(), TELL_AFTER_MS).unref()
      return undefined
    }
    this.#allowance.use()
    return this.#take()
  }

  /** Tells what was left out, if anything was. */
  close(): void {
    const leftOut = this.#take()
    if (leftOut === 0) return
    this.#allowance.use()
    this.#tell(leftOut)
  }

  #take(): number {
    const leftOut = this.#leftOut
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#leftOut = 0
    return leftOut
  }
}
