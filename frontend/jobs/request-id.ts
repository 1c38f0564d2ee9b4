import { randomFillSync } from 'node:crypto'

const RANDOM_BYTES = 16
const random = Buffer.alloc(256 * RANDOM_BYTES)
let used = random.length

/** The id that is made next: only its digits change. */
const text = Buffer.from('00000000-0000-4000-8000-000000000000')
/** Where its digits are, two for each random byte. */
const PLACES = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]
const DIGITS = Buffer.from('0123456789abcdef')

/**
 * A random UUID (RFC 9562, version 4) for x-request-id. The one of node:crypto is a string of twenty pieces,
 * which cost the garbage collector as much as two more headers; this one is a single piece.
 */
export function newRequestId(): string {
  if (used === random.length) {
    randomFillSync(random)
    used = 0
  }
  for (let i = 0; i < RANDOM_BYTES; i += 1) {
    let byte = random[used + i]!
    if (i === 6) byte = (byte & 0x0f) | 0x40
    else if (i === 8) byte = (byte & 0x3f) | 0x80
    const place = PLACES[i]!
    text[place] = DIGITS[byte >> 4]!
    text[place + 1] = DIGITS[byte & 0x0f]!
  }
  used += RANDOM_BYTES
  return text.toString('latin1')
}
