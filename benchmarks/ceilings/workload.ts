/** The answers of every target: small, so that the benchmark measures servers and not bandwidth. */

/** Items of one benchmarked stream, each one HTTP chunk or one gRPC message. */
export const ITEMS = 100

/** Bytes of one item. */
export const ITEM_BYTES = 100

/** The body of an echo request, 104 bytes. */
export const ECHO_BODY = '0123456789'.repeat(11).slice(0, 104)

/** The items of the benchmarked stream: number, spaces, newline. */
export const STREAM_ITEMS: readonly string[] = Array.from(
  { length: ITEMS },
  (_, index) => `${String(index + 1).padEnd(ITEM_BYTES - 1)}\n`,
)

/** The request of `count` (model-store/count): `n` items of `size` bytes, `delay` milliseconds apart. */
export function countBody(n: number, size: number, delay: number): string {
  return JSON.stringify({ n, size, delay })
}

/** A request for the same stream from `count`; `hundred` ignores it. */
export const STREAM_BODY = countBody(ITEMS, ITEM_BYTES, 0)

/** Model names, the same for every target. */
export const ECHO = 'echo'
export const COUNT = 'count'
/** benchmarks/handlers/hundred: the stream of the throughput benchmark. */
export const HUNDRED = 'hundred'

/** Bodies are bytes, so that JSON parsing is not measured. */
export const CONTENT_TYPE = 'application/octet-stream'

/** A stream that sends one item and then stays idle for a day. */
export const IDLE_BODY = countBody(2, ITEM_BYTES, 86_400_000)
