import { SPAN_BYTES, type SpanId, TRACE_BYTES, type TraceId } from './span-ids.ts'

/** Bytes that the length of a message probably takes; one of another size costs a copy. */
export const SHORT = 1
export const MEDIUM = 2

const INITIAL_BYTES = 65_536
/** So many bytes are handed on in their buffer, and not copied. */
const LARGE_COPY = 2 ** 18
/** Bytes of the buffer after one that was handed on, at most: it may have been large by chance. */
const MAX_NEXT = 2 ** 20
/** Buffers that came back and wait; more are rarely under way. */
const MAX_SPARE = 2
/** A string of more characters is written by Node, whose call costs more than a loop over this many. */
const LONG_TEXT = 48
/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 3
/** More than any field without a text or bytes has. */
const FIELD_BYTES = 24

type SharedBytes = Buffer<SharedArrayBuffer>

const VARINT = 0
const FIXED_64 = 1
const LENGTH_DELIMITED = 2
const FIXED_32 = 5

/**
 * Writes fields of protobuf messages into a buffer, which it uses again unless it hands it on. Its buffers
 * are shared, so that a thread can read them without a copy. To transfer one would cost the whole process:
 * V8 then checks at each use of any typed array whether its buffer is still there.
 * https://protobuf.dev/programming-guides/encoding/
 */
export class ProtobufWriter {
  #buffer = sharedBuffer(INITIAL_BYTES)
  /** Of the same bytes. */
  #words = viewOf(this.#buffer)
  #at = 0
  readonly #spare: SharedBytes[] = []

  /** What was written; nothing is then. Much of it comes in a shared buffer, to be given back. */
  take(): Uint8Array {
    const written = this.#buffer.subarray(0, this.#at)
    this.#at = 0
    if (written.length < LARGE_COPY) return new Uint8Array(written)
    // A copy would cost more than another buffer.
    this.#use(this.#spare.pop() ?? sharedBuffer(Math.min(this.#buffer.length, MAX_NEXT)))
    return written
  }

  /** Nobody reads any more what `take` has returned. */
  giveBack({ buffer }: Uint8Array): void {
    const isOurs = buffer instanceof SharedArrayBuffer && buffer.byteLength <= MAX_NEXT
    if (isOurs && this.#spare.length < MAX_SPARE) this.#spare.push(Buffer.from(buffer))
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
    this.#words.setFloat64(this.#at, value, true)
    this.#at += 8
  }

  fixed32(field: number, value: number): void {
    this.#tag(field, FIXED_32)
    this.#words.setUint32(this.#at, value, true)
    this.#at += 4
  }

  /** 64 bits from two words. */
  fixed64(field: number, low: number, high: number): void {
    this.#tag(field, FIXED_64)
    this.setFixed64(this.#at, low, high)
    this.#at += 8
  }

  /** In the place of the value of such a field. */
  setFixed64(at: number, low: number, high: number): void {
    this.#words.setUint32(at, low, true)
    this.#words.setUint32(at + 4, high, true)
  }

  /** @returns whether it is short, and ASCII: another one of its length can be set in its place */
  text(field: number, text: string): boolean {
    this.#reserve(text.length * CHARACTER_BYTES)
    const from = this.begin(field, 1)
    const isPlain = this.setText(from, text)
    this.#at = from + (isPlain ? text.length : this.#buffer.write(text, from))
    this.end(from, 1)
    return isPlain
  }

  /** False: it is long or has other characters than ASCII, and what is there now is not valid. */
  setText(at: number, text: string): boolean {
    if (text.length > LONG_TEXT) return false
    const buffer = this.#buffer
    for (let i = 0; i < text.length; i += 1) {
      const code = text.charCodeAt(i)
      if (code > 127) return false
      buffer[at + i] = code
    }
    return true
  }

  /** 16 bytes. */
  traceId(field: number, id: TraceId): void {
    this.head(field, TRACE_BYTES)
    this.setTraceId(this.#at, id)
    this.#at += TRACE_BYTES
  }

  setTraceId(at: number, { a, b, c, d }: TraceId): void {
    const words = this.#words
    words.setInt32(at, a)
    words.setInt32(at + 4, b)
    words.setInt32(at + 8, c)
    words.setInt32(at + 12, d)
  }

  /** 8 bytes. */
  spanId(field: number, id: SpanId): void {
    this.head(field, SPAN_BYTES)
    this.setSpanId(this.#at, id)
    this.#at += SPAN_BYTES
  }

  setSpanId(at: number, { high, low }: SpanId): void {
    this.#words.setInt32(at, high)
    this.#words.setInt32(at + 4, low)
  }

  /** Where the next field begins, until `take`. */
  get position(): number {
    return this.#at
  }

  /** Takes back what was written from there on. */
  back(position: number): void {
    this.#at = position
  }

  /** Fields that were written from there to there, once more. */
  again(from: number, to: number): void {
    this.#reserve(to - from)
    this.#buffer.copyWithin(this.#at, from, to)
    this.#at += to - from
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
    const larger = sharedBuffer(Math.max(needed, 2 * this.#buffer.length))
    larger.set(this.#buffer.subarray(0, this.#at))
    this.#use(larger)
  }

  #use(buffer: SharedBytes): void {
    this.#buffer = buffer
    this.#words = viewOf(buffer)
  }
}

function sharedBuffer(bytes: number): SharedBytes {
  return Buffer.from(new SharedArrayBuffer(bytes))
}

function viewOf({ buffer }: SharedBytes): DataView {
  return new DataView(buffer)
}

function sizeOfVarint(value: number): number {
  let size = 1
  for (let rest = value; rest > 127; rest >>>= 7) size += 1
  return size
}
