import { foldOf, type RandomWords, TraceId, writeDigits } from './span-ids.ts'

/** Traces whose headers are written together: one alone would cost a multiple. */
const PAGE = 64
const HEAD = 'traceparent\n'
const LINE = `${HEAD}00-${'0'.repeat(32)}-${'0'.repeat(16)}-00\n`
/** Where in a line the digits of each word begin: of the id of the trace, then of its first span. */
const PLACES = [0, 8, 16, 24, 33, 41].map((at) => HEAD.length + 3 + at)
const TRACE_AT = PLACES[0]!

/**
 * Draws traces that begin here, as nearly all do, and decides which of them are recorded. Of most that are
 * not, nothing is needed but the header for the handler.
 */
export class RootTraces {
  readonly #random: RandomWords
  readonly #bound: number
  readonly #words = new Int32Array(PLACES.length * PAGE)
  readonly #bytes = Buffer.from(LINE.repeat(PAGE))
  readonly #view = new DataView(this.#bytes.buffer, this.#bytes.byteOffset)
  #lines = ''
  #at = PAGE - 1

  /** @param bound those are recorded whose `foldOf` is less */
  constructor(random: RandomWords, bound: number) {
    this.#random = random
    this.#bound = bound
  }

  /** Goes on to the next one, of which all others here tell. @returns whether it is recorded */
  next(): boolean {
    this.#at += 1
    if (this.#at === PAGE) this.#write()
    const words = this.#words
    const at = this.#at * PLACES.length
    return foldOf(words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!) < this.#bound
  }

  get id(): TraceId {
    const words = this.#words
    const at = this.#at * PLACES.length
    const text = this.#text(TRACE_AT, TRACE_AT + 32)
    return new TraceId(text, words[at]!, words[at + 1]!, words[at + 2]!, words[at + 3]!)
  }

  /** One that is not recorded as a header, in the format of common/header-lines.ts. */
  get line(): string {
    return this.#text(0, LINE.length)
  }

  /** The value of this header. */
  get traceparent(): string {
    return this.#text(HEAD.length, LINE.length - 1)
  }

  #text(from: number, to: number): string {
    const at = this.#at * LINE.length
    return this.#lines.slice(at + from, at + to)
  }

  #write(): void {
    for (let trace = 0; trace < PAGE; trace += 1) {
      this.#draw(trace * PLACES.length)
      for (let i = 0; i < PLACES.length; i += 1)
        writeDigits(this.#view, trace * LINE.length + PLACES[i]!, this.#words[trace * PLACES.length + i]!)
    }
    this.#lines = this.#bytes.toString('latin1')
    this.#at = 0
  }

  /** Neither id is ever of only zeros. */
  #draw(at: number): void {
    const words = this.#words
    do {
      for (let i = 0; i < PLACES.length; i += 1) words[at + i] = this.#random.next()
    } while (
      (words[at]! | words[at + 1]! | words[at + 2]! | words[at + 3]!) === 0 ||
      (words[at + 4]! | words[at + 5]!) === 0
    )
  }
}
