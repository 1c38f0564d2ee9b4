import type { MessageShape } from './message-shape.ts'
import { PREFIX_BYTES } from './message-bytes.ts'

/** What a field counts: the objects for it take as much as five numbers. */
const FIELD_COST = 5
/** Shorter messages are decoded in some milliseconds, whatever they contain. */
const SMALL_BYTES = 65_536
/** Bytes of the longest number on the wire. */
const MAX_VARINT_BYTES = 10

/** Wire types (protobuf's encoding specification). */
const VARINT = 0
const FIXED_64 = 1
const LENGTH = 2
const FIXED_32 = 5

/**
 * Whether the elements of a message exceed a limit, before they are decoded: a field of two bytes takes
 * hundreds of bytes of memory. Each field counts five, in messages within it too, each byte of packed numbers
 * one; the bytes of strings count nothing. What is no message ends the count: the decoder refuses it.
 * @param parts of the message with its prefix
 */
export function exceedsElements(parts: readonly Buffer[], shape: MessageShape, maxElements: number): boolean {
  let size = -PREFIX_BYTES
  for (const part of parts) size += part.length
  if (size <= Math.min(SMALL_BYTES, maxElements / FIELD_COST)) return false
  const bytes = new PartsReader(parts)
  bytes.skip(PREFIX_BYTES)
  return !isCounted(bytes, size + PREFIX_BYTES, shape, { left: maxElements })
}

/** False: there are too many elements. */
function isCounted(bytes: PartsReader, end: number, shape: MessageShape, count: { left: number }): boolean {
  while (bytes.at < end) {
    const tag = bytes.varint()
    const field = shape.get(Math.floor(tag / 8))
    count.left -= FIELD_COST
    if (count.left < 0) return false
    switch (tag % 8) {
      case VARINT:
        bytes.varint()
        break
      case FIXED_64:
        bytes.skip(8)
        break
      case FIXED_32:
        bytes.skip(4)
        break
      case LENGTH: {
        const length = bytes.varint()
        if (typeof field === 'object') {
          if (!isCounted(bytes, Math.min(bytes.at + length, end), field, count)) return false
        } else {
          if (field === 'numbers') count.left -= length
          bytes.skip(length)
        }
        break
      }
      default:
        // Groups, which none of our messages has.
        return false
    }
  }
  return count.left >= 0
}

/** Reads a message that lies in several buffers, without joining them. */
class PartsReader {
  readonly #parts: readonly Buffer[]
  #index = 0
  #offset = 0
  /** Position in the whole. */
  at = 0

  constructor(parts: readonly Buffer[]) {
    this.#parts = parts
  }

  skip(length: number): void {
    this.at += length
    let offset = this.#offset + length
    let part = this.#parts[this.#index]
    while (part !== undefined && offset >= part.length) {
      offset -= part.length
      this.#index += 1
      part = this.#parts[this.#index]
    }
    this.#offset = offset
  }

  /** A number, inexact from 2^53 on. */
  varint(): number {
    let value = 0
    for (let i = 0; i < MAX_VARINT_BYTES; i += 1) {
      const byte = this.#parts[this.#index]?.[this.#offset] ?? 0
      this.skip(1)
      value += (byte & 0x7f) * 2 ** (7 * i)
      if (byte < 0x80) break
    }
    return value
  }
}
