import { randomFillSync } from 'node:crypto'

export const TRACE_BYTES = 16
export const SPAN_BYTES = 8
/** Ids of many requests are drawn at once: a call of the generator for each would cost more than the id. */
const POOL_BYTES = 6_144

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

  /**
   * The words joined by exclusive or: what OpenTelemetry's sampler by ratio compares with its bound. From 0
   * to 2^32 - 1.
   */
  get fold(): number {
    return (this.a ^ this.b ^ this.c ^ this.d) >>> 0
  }
}

/** The id of a span, likewise. */
export class SpanId {
  /** 16 hexadecimal digits. */
  readonly text: string
  readonly high: number
  readonly low: number

  constructor(text: string, high: number, low: number) {
    this.text = text
    this.high = high
    this.low = low
  }

  static of(text: string): SpanId {
    return new SpanId(text, wordAt(text, 0), wordAt(text, 8))
  }
}

/** Draws ids of traces and spans that nobody can guess: random bytes, never only zeros. */
export class SpanIds {
  readonly #bytes = Buffer.alloc(POOL_BYTES)
  readonly #fill: (bytes: Buffer) => Buffer
  #digits = ''
  #at = POOL_BYTES

  constructor(fill: (bytes: Buffer) => Buffer = randomFillSync) {
    this.#fill = fill
  }

  trace(): TraceId {
    for (;;) {
      const at = this.#next(TRACE_BYTES)
      const [a, b, c, d] = [this.#word(at), this.#word(at + 4), this.#word(at + 8), this.#word(at + 12)]
      if ((a | b | c | d) !== 0) return new TraceId(this.#text(at, TRACE_BYTES), a, b, c, d)
    }
  }

  span(): SpanId {
    for (;;) {
      const at = this.#next(SPAN_BYTES)
      const [high, low] = [this.#word(at), this.#word(at + 4)]
      if ((high | low) !== 0) return new SpanId(this.#text(at, SPAN_BYTES), high, low)
    }
  }

  /** Where so many bytes are that nobody has. */
  #next(bytes: number): number {
    if (this.#at + bytes > POOL_BYTES) {
      this.#digits = this.#fill(this.#bytes).toString('hex')
      this.#at = 0
    }
    const at = this.#at
    this.#at += bytes
    return at
  }

  #word(at: number): number {
    return this.#bytes.readInt32BE(at)
  }

  #text(at: number, bytes: number): string {
    return this.#digits.slice(2 * at, 2 * (at + bytes))
  }
}

/** Of eight digits. */
function wordAt(digits: string, at: number): number {
  return Number.parseInt(digits.slice(at, at + 8), 16) | 0
}
