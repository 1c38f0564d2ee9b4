import { randomFillSync } from 'node:crypto'

const TRACE_DIGITS = 32
const SPAN_DIGITS = 16
const ZERO = 0x30
/** Ids of many requests are drawn at once: a call of the generator for each would cost more than the id. */
const POOL_BYTES = 6_144

/** Ids of traces and spans that nobody can guess: random bytes as hexadecimal digits, never only zeros. */
export class SpanIds {
  readonly #bytes = Buffer.alloc(POOL_BYTES)
  readonly #fill: (bytes: Buffer) => Buffer
  #digits = ''
  #at = 0

  constructor(fill: (bytes: Buffer) => Buffer = randomFillSync) {
    this.#fill = fill
  }

  /** 32 digits. */
  trace(): string {
    return this.#next(TRACE_DIGITS)
  }

  /**
   * The four words of the trace id that was drawn last, joined by exclusive or: what OpenTelemetry's sampler
   * by ratio compares with its bound. From 0 to 2^32 - 1.
   */
  get traceFold(): number {
    const at = this.#at / 2 - TRACE_DIGITS / 2
    const bytes = this.#bytes
    let fold = 0
    for (let i = 0; i < TRACE_DIGITS / 2; i += 4) fold ^= bytes.readInt32BE(at + i)
    return fold >>> 0
  }

  /** 16 digits. */
  span(): string {
    return this.#next(SPAN_DIGITS)
  }

  #next(digits: number): string {
    for (;;) {
      if (this.#at + digits > this.#digits.length) {
        this.#digits = this.#fill(this.#bytes).toString('hex')
        this.#at = 0
      }
      const id = this.#digits.slice(this.#at, (this.#at += digits))
      if (!isZero(id)) return id
    }
  }
}

function isZero(id: string): boolean {
  return id.charCodeAt(0) === ZERO && /^0+$/.test(id)
}
