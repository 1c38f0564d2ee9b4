/** Bytes that the length of a message probably takes; one of another size costs a copy. */
export const SHORT = 1
export const MEDIUM = 2

const INITIAL_BYTES = 65_536
/** So many bytes are handed on in their buffer, and not copied. */
const LARGE_COPY = 2 ** 18
/** Bytes of the buffer after one that was handed on, at most: it may have been large by chance. */
const MAX_NEXT = 2 ** 20
/** A string of more characters is written by Node, whose call costs more than a loop over this many. */
const LONG_TEXT = 48
/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 3
/** More than any field without a text or bytes has. */
const FIELD_BYTES = 24

const VARINT = 0
const FIXED_64 = 1
const LENGTH_DELIMITED = 2
const FIXED_32 = 5

/** Values of hexadecimal digits by their character codes. */
const NIBBLES = new Uint8Array(128)
for (let value = 0; value < 16; value += 1) {
  const digit = value.toString(16)
  // Clients may write the ids of B3 and Jaeger with capital letters.
  NIBBLES[digit.charCodeAt(0)] = NIBBLES[digit.toUpperCase().charCodeAt(0)] = value
}

/**
 * Writes fields of protobuf messages into a buffer, which it uses again unless it hands it on.
 * https://protobuf.dev/programming-guides/encoding/
 */
export class ProtobufWriter {
  #buffer = Buffer.allocUnsafeSlow(INITIAL_BYTES)
  #at = 0

  /** What was written; nothing is then. */
  take(): Uint8Array<ArrayBuffer> {
    const written = this.#buffer.subarray(0, this.#at)
    this.#at = 0
    if (written.length < LARGE_COPY) return new Uint8Array(written)
    // A copy would cost more than another buffer.
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(this.#buffer.length, MAX_NEXT))
    return written
  }

  /** What stands before a message of so many bytes in a field. */
  head(field: number, length: number): void {
    this.#tag(field, LENGTH_DELIMITED)
    this.#varint(length)
  }

  /**
   * Begins a message in a field. @returns where it begins, for `end`
   * @param lengthBytes those that its length probably takes
   */
  begin(field: number, lengthBytes: number): number {
    this.#tag(field, LENGTH_DELIMITED)
    return (this.#at += lengthBytes)
  }

  /** Ends what began there. @returns where it begins now, after a length of its size */
  end(from: number, lengthBytes: number): number {
    const length = this.#at - from
    const shift = sizeOfVarint(length) - lengthBytes
    if (shift !== 0) {
      this.#reserve(shift)
      this.#buffer.copyWithin(from + shift, from, this.#at)
    }
    this.#at = from - lengthBytes
    this.#varint(length)
    this.#at += length
    return from + shift
  }

  /** From 0 to 2^32 - 1. */
  number(field: number, value: number): void {
    this.#tag(field, VARINT)
    this.#varint(value)
  }

  /** A number that is whole and fits into 64 bits. */
  int64(field: number, value: number): void {
    if (value >= 0 && value < 2 ** 32) {
      this.number(field, value)
      return
    }
    this.#tag(field, VARINT)
    let rest = BigInt.asUintN(64, BigInt(value))
    for (; rest > 127n; rest >>= 7n) this.#buffer[this.#at++] = Number(rest & 127n) | 128
    this.#buffer[this.#at++] = Number(rest)
  }

  double(field: number, value: number): void {
    this.#tag(field, FIXED_64)
    this.#at = this.#buffer.writeDoubleLE(value, this.#at)
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, FIXED_32)
    this.#at = this.#buffer.writeUInt32LE(value, this.#at)
  }

  /** 64 bits from two words. */
  fixed64(field: number, low: number, high: number): void {
    this.#tag(field, FIXED_64)
    this.#at = this.#buffer.writeUInt32LE(low, this.#at)
    this.#at = this.#buffer.writeUInt32LE(high, this.#at)
  }

  text(field: number, text: string): void {
    this.#reserve(text.length * CHARACTER_BYTES)
    const from = this.begin(field, 1)
    if (text.length > LONG_TEXT || !this.#ascii(text)) this.#at = from + this.#buffer.write(text, from)
    this.end(from, 1)
  }

  /** Bytes, as hexadecimal digits: at most 254. */
  hex(field: number, digits: string): void {
    this.#reserve(digits.length)
    this.#tag(field, LENGTH_DELIMITED)
    const buffer = this.#buffer
    let at = this.#at
    buffer[at++] = digits.length / 2
    for (let i = 0; i < digits.length; i += 2)
      buffer[at++] = (NIBBLES[digits.charCodeAt(i)]! << 4) | NIBBLES[digits.charCodeAt(i + 1)]!
    this.#at = at
  }

  /** Where the next field begins, until `take`. */
  get position(): number {
    return this.#at
  }

  /** Fields that were written from there to there, once more. */
  again(from: number, to: number): void {
    this.#reserve(to - from)
    this.#buffer.copyWithin(this.#at, from, to)
    this.#at += to - from
  }

  /** False: it has other characters. */
  #ascii(text: string): boolean {
    const buffer = this.#buffer
    let at = this.#at
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i)
      if (code > 127) return false
      buffer[at++] = code
    }
    this.#at = at
    return true
  }

  #tag(field: number, type: number): void {
    this.#reserve(0)
    this.#varint((field << 3) | type)
  }

  /** Below 2^32. */
  #varint(value: number): void {
    let rest = value
    for (; rest > 127; rest >>>= 7) this.#buffer[this.#at++] = (rest & 127) | 128
    this.#buffer[this.#at++] = rest
  }

  /** So many bytes, and another field. */
  #reserve(bytes: number): void {
    const needed = this.#at + bytes + FIELD_BYTES
    if (needed <= this.#buffer.length) return
    const larger = Buffer.allocUnsafeSlow(Math.max(needed, 2 * this.#buffer.length))
    larger.set(this.#buffer.subarray(0, this.#at))
    this.#buffer = larger
  }
}

function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value; rest > 127; rest >>>= 7) size += 1
  return size
}
