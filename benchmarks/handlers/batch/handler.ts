import type { HandlerRequest } from 'torchserve-ts'

const nothing = new Int32Array(new SharedArrayBuffer(4))

/** Blocks for as many milliseconds as the first request says; each answer is the size of its batch. */
export function handle(requests: HandlerRequest[]): string[] {
  const { body, data } = requests[0]!
  const { ms = 0 } = JSON.parse(Buffer.from((body ?? data) as Uint8Array).toString()) as { ms?: number }
  Atomics.wait(nothing, 0, 0, ms)
  return requests.map(() => `batch of ${requests.length}`)
}
