/** msgpack pieces, written and read in place. Only the forms that hot frames use (hot-frames.ts); all are standard msgpack. */

/** Most bytes of UTF-8 that a character of a JavaScript string takes. */
const MAX_BYTES_PER_CHARACTER = 3

/** At most how many bytes a string takes, without counting them. */
export function textRoom(text: string): number {
  return 5 + text.length * MAX_BYTES_PER_CHARACTER
}

/** Where to write, and how far it is written. The caller has made room. */
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

  /** Bytes that are always the same: keys, and values of one word. */
  constant(bytes: Uint8Array): void {
    this.buffer.set(bytes, this.at)
    this.at += bytes.byteLength
  }

  /** As uint32, marker included. */
  uint32(value: number): void {
    this.buffer[this.at++] = 0xce
    this.at = this.buffer.writeUInt32BE(value, this.at)
  }

  /** As float64. */
  double(value: number): void {
    this.buffer[this.at++] = 0xcb
    this.at = this.buffer.writeDoubleBE(value, this.at)
  }

  /** As array32. */
  arrayHead(length: number): void {
    this.buffer[this.at++] = 0xdd
    this.at = this.buffer.writeUInt32BE(length, this.at)
  }

  /** As str8 when it surely fits, else str32. */
  text(text: string): void {
    const short = text.length * MAX_BYTES_PER_CHARACTER <= 0xff
    const start = this.at + (short ? 2 : 5)
    const size = this.buffer.write(text, start)
    if (short) {
      this.buffer[this.at] = 0xd9
      this.buffer[this.at + 1] = size
    } else {
      this.buffer[this.at] = 0xdb
      this.buffer.writeUInt32BE(size, this.at + 1)
    }
    this.at = start + size
  }

  /** As bin32. */
  bytes(bytes: Uint8Array): void {
    this.buffer[this.at++] = 0xc6
    this.at = this.buffer.writeUInt32BE(bytes.byteLength, this.at)
    this.buffer.set(bytes, this.at)
    this.at += bytes.byteLength
  }
}

/**
 * Reads what a Writer wrote, from `at` to `end`. Whatever does not fit turns `ok` to false for good, and what is returned from then
 * on means nothing: the general codec has to decide.
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

  /** The next byte without going on; -1 at the end. */
  get next(): number {
    return this.at < this.end ? this.buffer[this.at]! : -1
  }

  byte(): number {
    return this.#has(1) ? this.buffer[this.at++]! : 0
  }

  constant(bytes: Uint8Array): void {
    if (!this.tryConstant(bytes)) this.ok = false
  }

  /** Goes on if these bytes come next. */
  tryConstant(bytes: Uint8Array): boolean {
    if (this.at + bytes.byteLength > this.end) return false
    for (let i = 0; i < bytes.byteLength; i += 1) if (this.buffer[this.at + i] !== bytes[i]) return false
    this.at += bytes.byteLength
    return true
  }

  uint32(): number {
    if (this.byte() !== 0xce || !this.#has(4)) return this.#fail()
    this.at += 4
    return this.buffer.readUInt32BE(this.at - 4)
  }

  /** A float64 that is a number. */
  finite(): number {
    if (this.byte() !== 0xcb || !this.#has(8)) return this.#fail()
    const value = this.buffer.readDoubleBE(this.at)
    this.at += 8
    return Number.isFinite(value) ? value : this.#fail()
  }

  arrayHead(): number {
    return this.#count(0xdd)
  }

  text(): string {
    const size = this.#size(0xd9, 0xdb)
    this.at += size
    return size === 0 ? '' : this.buffer.toString('utf8', this.at - size, this.at)
  }

  /** A view of the frame. */
  bytes(): Buffer {
    const size = this.#size(0, 0xc6)
    this.at += size
    return this.buffer.subarray(this.at - size, this.at)
  }

  #size(short: number, long: number): number {
    const marker = this.byte()
    let size: number
    if (marker === short && short !== 0) {
      size = this.byte()
    } else if (marker === long && this.#has(4)) {
      size = this.buffer.readUInt32BE(this.at)
      this.at += 4
    } else {
      return this.#fail()
    }
    return this.#has(size) ? size : this.#fail()
  }

  /** A count of things that take at least a byte each, so that a lie is seen before anything is made of it. */
  #count(marker: number): number {
    if (this.byte() !== marker || !this.#has(4)) return this.#fail()
    const count = this.buffer.readUInt32BE(this.at)
    this.at += 4
    return this.#has(count) ? count : this.#fail()
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

/** A short string of ASCII as msgpack writes it: for keys and fixed words. */
export function fixedText(text: string): Uint8Array {
  return Buffer.from(String.fromCharCode(0xa0 + text.length) + text, 'latin1')
}
