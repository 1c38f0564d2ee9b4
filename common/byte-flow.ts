import type { Readable } from 'node:stream'

/**
 * Limits how often something happens: up to `burst` times at once, then once every `everyMs` milliseconds.
 */
export class Allowance {
  readonly #everyMs: number
  readonly #savedMs: number
  /** The allowance is used up to this time (performance.now()). */
  #used = -Infinity

  constructor(everyMs: number, burst: number) {
    this.#everyMs = everyMs
    this.#savedMs = everyMs * burst
  }

  /** Milliseconds until it may happen again; 0: now. */
  get wait(): number {
    return Math.max(0, this.#used + this.#everyMs - performance.now())
  }

  /** Records that it happened. */
  use(): void {
    this.#used = Math.max(this.#used, performance.now() - this.#savedMs) + this.#everyMs
  }
}

/**
 * Keeps the turns of the event loop short while much arrives on many streams: Node reads up to two megabytes
 * of each in a turn. What goes beyond the bytes of a turn waits in line.
 */
export class ReadPace {
  readonly #bytesOfTurn: number
  readonly #streamsOfTurn: number
  #bytes = 0
  #end: NodeJS.Immediate | undefined
  readonly #waiting: Readable[] = []

  /**
   * @param bytesOfTurn after which those that go on sending wait for the next turn
   * @param streamsOfTurn of those that waited, so many go on in a turn; Node reads at least 64 KiB of each.
   * Default: all
   */
  constructor(bytesOfTurn: number, streamsOfTurn = Infinity) {
    this.#bytesOfTurn = bytesOfTurn
    this.#streamsOfTurn = streamsOfTurn
  }

  /** Bytes have come from this stream. */
  read(stream: Readable, bytes: number): void {
    this.#bytes += bytes
    this.#end ??= setImmediate(this.#next)
    // One that is paused already is in line, or waits for its reader.
    if (this.#bytes <= this.#bytesOfTurn || stream.isPaused()) return
    stream.pause()
    this.#waiting.push(stream)
  }

  readonly #next = (): void => {
    this.#bytes = 0
    const waiting = this.#waiting
    const [first, ...others] = waiting.splice(0, this.#streamsOfTurn)
    for (const stream of others) stream.resume()
    // It has used most of the turn before: the next one is another's.
    first?.resume()
    this.#end = waiting.length > 0 ? setImmediate(this.#next) : undefined
  }
}

/** The bytes that Node.js reads from a socket at once. A larger chunk was joined, for a large message. */
export const SOCKET_READ_BYTES = 65_536

/**
 * Keeps the beginning of something that has not arrived completely. A chunk that arrives when nothing is kept
 * is read in place, without a copy.
 */
export class UnreadBytes {
  #chunks: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  /**
   * Returns the kept bytes joined with the chunk. Returns undefined, and keeps both, if they are less than
   * `wanted` bytes.
   */
  join(chunk: Buffer, wanted: number): Buffer | undefined {
    if (this.#bytes === 0) return chunk
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    if (this.#bytes < wanted) return undefined
    const joined = Buffer.concat(this.#chunks, this.#bytes)
    this.#chunks = []
    this.#bytes = 0
    return joined
  }

  /** Keeps the end of a chunk, from the byte at `from`. */
  keep(chunk: Buffer, from: number): void {
    this.#chunks = [from === 0 ? chunk : chunk.subarray(from)]
    this.#bytes = chunk.length - from
  }
}

const FIRST_CAPACITY = 1024

/**
 * Joins the items of a stream into one body of at most `limit` bytes. It copies them into one growing buffer,
 * so the cost depends on the bytes and not on the number of items.
 */
export class ByteCollector {
  readonly #limit: number
  #buffer: Buffer
  #length = 0

  constructor(limit: number) {
    this.#limit = limit
    this.#buffer = Buffer.allocUnsafe(Math.min(FIRST_CAPACITY, limit))
  }

  /** Bytes that it holds, used or not. */
  get capacity(): number {
    return this.#buffer.byteLength
  }

  /** Returns false, and adds nothing, if the item does not fit. */
  add(item: Uint8Array): boolean {
    const length = this.#length + item.byteLength
    if (length > this.#limit) return false
    if (length > this.#buffer.byteLength) this.#grow(length)
    this.#buffer.set(item, this.#length)
    this.#length = length
    return true
  }

  /** The collected bytes: a view that is valid until the next `add`. */
  bytes(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  #grow(needed: number): void {
    const capacity = Math.min(this.#limit, Math.max(needed, this.#buffer.byteLength * 2))
    const grown = Buffer.allocUnsafe(capacity)
    this.#buffer.copy(grown, 0, 0, this.#length)
    this.#buffer = grown
  }
}
