/**
 * What every target answers in a benchmark: small requests, so that the servers and not the bytes are measured.
 */

/** Items of one benchmarked stream, each one HTTP chunk or one gRPC message. */
export const ITEMS = 100

/** Bytes of one item. */
export const ITEM_BYTES = 100

/**
 * The body of an echo request, 104 bytes. It is JSON exactly as a server prints it again after parsing (two spaces), so
 * that a server that parses and a ceiling that does not answer the same bytes.
 */
export const ECHO_BODY = `{\n  "text": "${'0123456789'.repeat(9).slice(0, 87)}"\n}`

/** The items of the benchmarked stream, byte for byte those of model-store/count: number, spaces, newline. */
export const STREAM_ITEMS: readonly string[] = Array.from(
  { length: ITEMS },
  (_, index) => `${String(index + 1).padEnd(ITEM_BYTES - 1)}\n`,
)

/** The request of `count` (model-store/count): `n` items of `size` bytes, `delay` milliseconds apart. */
export function countBody(n: number, size: number, delay: number): string {
  return JSON.stringify({ n, size, delay })
}

/** The request for the benchmarked stream. */
export const STREAM_BODY = countBody(ITEMS, ITEM_BYTES, 0)

/** Model names, the same for every target. */
export const ECHO = 'echo'
export const COUNT = 'count'

/** A stream that sends one item and then nothing for a day. */
export const IDLE_BODY = countBody(2, ITEM_BYTES, 86_400_000)
