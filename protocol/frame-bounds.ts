import { ServeError } from '../common/errors.ts'

/** Elements of a frame: values and keys. The largest honest frame reports some hundreds of metrics. */
const MAX_ELEMENTS = 100_000
/** Levels of a frame; the configuration of a model may have 100. */
const MAX_DEPTH = 128
/** Shorter frames are decoded in a few milliseconds, whatever they contain. */
const SMALL_BYTES = 16_384

/** How a msgpack value continues after its first byte. */
interface Form {
  /** Bytes of a length or a count behind it. */
  readonly head: 0 | 1 | 2 | 4
  /** Values that follow for each of the count; 0: the count is in bytes. */
  readonly values: 0 | 1 | 2
  /** Count, or bytes, that the first byte itself says. */
  readonly fixed: number
}

const bytes = (fixed: number): Form => ({ head: 0, values: 0, fixed })
const sized = (head: 1 | 2 | 4, values: 0 | 1 | 2 = 0, fixed = 0): Form => ({ head, values, fixed })

/** The first bytes from 0xc0 to 0xdf (msgpack specification, "Formats"). */
const MARKED: readonly Form[] = [
  ...[bytes(0), bytes(0), bytes(0), bytes(0)], // nil, unused, false, true
  ...[sized(1), sized(2), sized(4)], // bin
  ...[sized(1, 0, 1), sized(2, 0, 1), sized(4, 0, 1)], // ext, with a byte for its type
  ...[bytes(4), bytes(8)], // float
  ...[bytes(1), bytes(2), bytes(4), bytes(8)], // uint
  ...[bytes(1), bytes(2), bytes(4), bytes(8)], // int
  ...[bytes(2), bytes(3), bytes(5), bytes(9), bytes(17)], // fixext
  ...[sized(1), sized(2), sized(4)], // str
  ...[sized(2, 1), sized(4, 1)], // array
  ...[sized(2, 2), sized(4, 2)], // map
]

/** By first byte. */
const FORMS: readonly Form[] = Array.from({ length: 256 }, (_, first): Form => {
  if (first < 0x80 || first >= 0xe0) return bytes(0)
  if (first < 0x90) return { head: 0, values: 2, fixed: first - 0x80 }
  if (first < 0xa0) return { head: 0, values: 1, fixed: first - 0x90 }
  return first < 0xc0 ? bytes(first - 0xa0) : MARKED[first - 0xc0]!
})

/**
 * Checks bytes from..to before they are decoded: a value of one byte takes a hundred bytes of memory. Frames
 * that are not msgpack pass: the decoder refuses them.
 * @throws ServeError PROTOCOL
 */
export function checkFrameBounds(chunk: Buffer, from: number, to: number): void {
  if (to - from <= SMALL_BYTES) return
  /** Values that are missing on each level. */
  const missing: number[] = []
  let elements = 0
  for (let at = from; at < to;) {
    const { head, values, fixed } = FORMS[chunk[at]!]!
    if (at + 1 + head > to) return
    const count = fixed + (head === 0 ? 0 : chunk.readUIntBE(at + 1, head))
    at += 1 + head
    elements += 1
    if (values === 0) at += count
    else if (count > 0) missing.push(count * values + 1)
    if (elements > MAX_ELEMENTS || missing.length > MAX_DEPTH) throw tooMany()
    close(missing)
  }
}

/** One more value has come. */
function close(missing: number[]): void {
  while (missing.length > 0) {
    const last = missing.length - 1
    missing[last]! -= 1
    if (missing[last]! > 0) return
    missing.pop()
  }
}

function tooMany(): ServeError {
  return new ServeError(
    'PROTOCOL',
    `A frame must have at most ${MAX_ELEMENTS} values on at most ${MAX_DEPTH} levels`,
  )
}
