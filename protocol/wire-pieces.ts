/**
 * msgpack values, written and read in place. Only the forms that the frequent frames use (predict-frame.ts,
 * response-frame.ts), all of them standard msgpack. Keys and markers between two values are one constant.
 */

/** Maximum UTF-8 bytes per JavaScript character. */
const MAX_BYTES_PER_CHARACTER = 3

export const MARKER = {
  map: 0x80,
  true: 0xc3,
  double: 0xcb,
  uint32: 0xce,
  bin32: 0xc6,
  array32: 0xdd,
} as const
const STR8 = 0xd9
const STR32 = 0xdb

/** Constant bytes: markers as numbers, short ASCII strings in msgpack's form. */
export function constant(...pieces: readonly (number | string)[]): Uint8Array {
  const bytes = (piece: number | string): Buffer =>
    typeof piece === 'number'
      ? Buffer.of(piece)
      : Buffer.from(String.fromCharCode(0xa0 + piece.length) + piece, 'latin1')
  return Buffer.concat(pieces.map(bytes))
}

/** Upper bound of a string's bytes, without counting them. */
export function textRoom(text: string): number {
  return 5 + text.length * MAX_BYTES_PER_CHARACTER
}

/** A write position in a buffer. The caller ensures that there is room. */
export class Writer {
  buffer: Buffer
  at: number

  constructor(buffer: Buffer, at: number) {
    this.buffer = buffer
    this.at = at
  }

  byte(value: number): void {
    this.buffer[this.at++] = value
  }

  constant(bytes: Uint8Array): void {
    this.buffer.set(bytes, this.at)
    this.at += bytes.length
  }

  uint32(value: number): void {
    this.at = this.buffer.writeUInt32BE(value, this.at)
  }

  double(value: number): void {
    this.at = this.buffer.writeDoubleBE(value, this.at)
  }

  /** A string with its marker: str8 if it surely fits, else str32. */
  text(text: string): void {
    const { buffer, at } = this
    const short = text.length * MAX_BYTES_PER_CHARACTER <= 0xff
    const start = at + (short ? 2 : 5)
    const size = buffer.write(text, start)
    buffer[at] = short ? STR8 : STR32
    if (short) buffer[at + 1] = size
    else buffer.writeUInt32BE(size, at + 1)
    this.at = start + size
  }

  /** Size and bytes, without the marker. */
  bytes(bytes: Uint8Array): void {
    this.uint32(bytes.length)
    this.constant(bytes)
  }
}

/**
 * Reads what a Writer wrote, from `at` to `end`. The first mismatch sets `ok` to false for good. Results
 * after that are meaningless, and the general codec decodes the frame instead.
 */
export class Reader {
  readonly buffer: Buffer
  at: number
  readonly end: number
  ok = true

  constructor(buffer: Buffer, at: number, end: number) {
    this.buffer = buffer
    this.at = at
    this.end = end
  }

  byte(): number {
    return this.#has(1) ? this.buffer[this.at++]! : 0
  }

  constant(bytes: Uint8Array): void {
    if (!this.tryConstant(bytes)) this.ok = false
  }

  /** Advances if these bytes come next. */
  tryConstant(bytes: Uint8Array): boolean {
    const { buffer, at } = this
    const size = bytes.length
    if (at + size > this.end) return false
    for (let i = 0; i < size; i += 1) if (buffer[at + i] !== bytes[i]) return false
    this.at = at + size
    return true
  }

  uint32(): number {
    if (!this.#has(4)) return 0
    this.at += 4
    return this.buffer.readUInt32BE(this.at - 4)
  }

  /** A finite float64. */
  finite(): number {
    if (!this.#has(8)) return 0
    const value = this.buffer.readDoubleBE(this.at)
    this.at += 8
    return Number.isFinite(value) ? value : this.#fail()
  }

  /**
   * A count of elements of at least one byte each; a count beyond the frame's end is rejected before anything
   * is allocated.
   */
  count(): number {
    const count = this.uint32()
    return this.#has(count) ? count : 0
  }

  text(): string {
    const marker = this.byte()
    const size = marker === STR8 ? this.byte() : marker === STR32 ? this.uint32() : this.#fail()
    if (!this.#has(size) || size === 0) return ''
    this.at += size
    return this.buffer.toString('utf8', this.at - size, this.at)
  }

  /** A view of the frame: size and bytes, without the marker. */
  bytes(): Buffer {
    const size = this.count()
    this.at += size
    return this.buffer.subarray(this.at - size, this.at)
  }

  #has(bytes: number): boolean {
    if (this.ok && this.at + bytes <= this.end) return true
    this.ok = false
    return false
  }

  #fail(): 0 {
    this.ok = false
    return 0
  }
}
