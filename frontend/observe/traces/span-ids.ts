import { randomFillSync } from 'node:crypto'

const TRACE_BYTES = 16
const SPAN_BYTES = 8
/** Ids of many requests are drawn at once: a call of the generator for each would cost more than the id. */
const POOL_BYTES = 6_144

/** Ids of traces and spans that nobody can guess: random bytes as hexadecimal digits, never only zeros. */
export class SpanIds {
  readonly #pool = Buffer.alloc(POOL_BYTES)
  #at = POOL_BYTES

  /** 32 digits. */
  trace(): string {
    return this.#next(TRACE_BYTES)
  }

  /** 16 digits. */
  span(): string {
    return this.#next(SPAN_BYTES)
  }

  #next(bytes: number): string {
    for (;;) {
      if (this.#at + bytes > POOL_BYTES) {
        randomFillSync(this.#pool)
        this.#at = 0
      }
      const id = this.#pool.toString('hex', this.#at, this.#at + bytes)
      this.#at += bytes
      if (!isZero(id)) return id
    }
  }
}

function isZero(id: string): boolean {
  return id.startsWith('00000000') && /^0+$/.test(id)
}
