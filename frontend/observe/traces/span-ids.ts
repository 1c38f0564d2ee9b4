import { randomFillSync } from 'node:crypto'

export const TRACE_BYTES = 16
export const SPAN_BYTES = 8
/** Ids of many requests are drawn at once: a call of the generator for each would cost more than the id. */
const POOL_WORDS = 1_536

/** The hexadecimal digits of each byte. */
const PAIRS = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** Their codes as two bytes, the first one high. */
const CODES = Uint16Array.from(PAIRS, (pair) => (pair.charCodeAt(0) << 8) | pair.charCodeAt(1))

/** The id of a trace: its hexadecimal digits, and its words, of which bytes are made without them. */
export class TraceId {
  /** 32 hexadecimal digits. */
  readonly text: string
  readonly a: number
  readonly b: number
  readonly c: number
  readonly d: number

  /** The words, in their order, with their signs. */
  constructor(text: string, a: number, b: number, c: number, d: number) {
    this.text = text
    this.a = a
    this.b = b
    this.c = c
    this.d = d
  }

  static of(text: string): TraceId {
    return new TraceId(text, wordAt(text, 0), wordAt(text, 8), wordAt(text, 16), wordAt(text, 24))
  }

  /** What OpenTelemetry's sampler by ratio compares with its bound. */
  get fold(): number {
    return foldOf(this.a, this.b, this.c, this.d)
  }
}

/** The words of the id of a trace joined by exclusive or. From 0 to 2^32 - 1. */
export function foldOf(a: number, b: number, c: number, d: number): number {
  return (a ^ b ^ c ^ d) >>> 0
}

/** The id of a span: its words. Few are ever read as text. */
export class SpanId {
  readonly high: number
  readonly low: number

  constructor(high: number, low: number) {
    this.high = high
    this.low = low
  }

  static of(text: string): SpanId {
    return new SpanId(wordAt(text, 0), wordAt(text, 8))
  }

  /** 16 hexadecimal digits. */
  get text(): string {
    return digitsOf(this.high) + digitsOf(this.low)
  }
}

/** Random words that nobody can guess. */
export class RandomWords {
  readonly #words = new Int32Array(POOL_WORDS)
  readonly #fill: (words: Int32Array) => unknown
  #at = POOL_WORDS

  constructor(fill: (words: Int32Array) => unknown = randomFillSync) {
    this.#fill = fill
  }

  next(): number {
    if (this.#at === POOL_WORDS) {
      this.#fill(this.#words)
      this.#at = 0
    }
    return this.#words[this.#at++]!
  }

  /** The id of a span, never of only zeros. */
  span(): SpanId {
    for (;;) {
      const [high, low] = [this.next(), this.next()]
      if ((high | low) !== 0) return new SpanId(high, low)
    }
  }
}

/** Of eight digits. */
function wordAt(digits: string, at: number): number {
  return Number.parseInt(digits.slice(at, at + 8), 16) | 0
}

function digitsOf(word: number): string {
  return PAIRS[word >>> 24]! + PAIRS[(word >>> 16) & 255]! + PAIRS[(word >>> 8) & 255]! + PAIRS[word & 255]!
}

/** Writes the eight digits of a word. */
export function writeDigits(view: DataView, at: number, word: number): void {
  view.setUint16(at, CODES[word >>> 24]!)
  view.setUint16(at + 2, CODES[(word >>> 16) & 255]!)
  view.setUint16(at + 4, CODES[(word >>> 8) & 255]!)
  view.setUint16(at + 6, CODES[word & 255]!)
}
