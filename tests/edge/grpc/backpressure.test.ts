import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { readAll } from '../../support/grpc-clients.ts'
import { RawClient, readBytes } from './raw-client.ts'
import { REQUEST, startGrpc, streamWith, type RunningGrpc } from './start-grpc.ts'
import type { Work } from './fake-models.ts'

const KB = 1024
const MB = 1024 * KB

let grpc: RunningGrpc
let client: RawClient

beforeEach(async () => {
  grpc = await startGrpc()
  client = new RawClient(grpc.port)
})

afterEach(async () => {
  await client.close()
  await grpc.close()
})

/** A handler that heeds `false` and goes on when it hears `drained`. */
class Producer {
  bytes = 0
  pauses = 0
  readonly #work: Work
  readonly #item: Buffer
  readonly #total: number

  constructor(work: Work, itemBytes: number, totalBytes: number) {
    this.#work = work
    this.#item = Buffer.alloc(itemBytes, 1)
    this.#total = totalBytes
    work.onDrained = () => this.run()
    this.run()
  }

  run(): void {
    while (!this.#work.job.ended) {
      const last = this.bytes >= this.#total
      const room = this.#work.respond(last ? '' : this.#item, !last)
      if (last) return
      this.bytes += this.#item.byteLength
      if (!room) {
        this.pauses++
        return
      }
    }
  }
}

/** Starts a stream of 200 MB that nobody reads. */
async function stalledStream(itemBytes: number): Promise<Producer> {
  const working = grpc.models.nextWork()
  client.stream()
  return new Producer(await working, itemBytes, 200 * MB)
}

/** Reads a stream of 4 MB on the same connection to its end. */
async function neighbour(): Promise<void> {
  const working = grpc.models.nextWork()
  const bytes = readBytes(client.stream())
  new Producer(await working, 64 * KB, 4 * MB)
  expect(await bytes).toBeGreaterThan(4 * MB)
}

test.each([100, 64 * KB, MB])(
  'readers that stop in streams of %i-byte items stop their handlers, others on the connection go on',
  async (itemBytes) => {
    const stalled = [await stalledStream(itemBytes), await stalledStream(itemBytes)]
    await neighbour()
    const before = stalled.map(({ bytes }) => bytes)
    await neighbour()
    expect(stalled.map(({ bytes }) => bytes)).toEqual(before)
    for (const { bytes, pauses } of stalled) {
      expect(pauses).toBeGreaterThan(0)
      expect(bytes).toBeLessThanOrEqual(itemBytes + 256 * KB)
    }
  },
)

test('a reader that goes on gets the rest', async () => {
  const working = grpc.models.nextWork()
  const call = client.stream()
  const producer = new Producer(await working, 64 * KB, 8 * MB)
  await neighbour()
  expect(producer.bytes).toBeLessThan(MB)
  expect(await readBytes(call)).toBeGreaterThan(8 * MB)
  expect(producer.bytes).toBe(8 * MB)
})

test('an item that waits shares no memory with what it came in', async () => {
  const working = grpc.models.nextWork()
  const reading = streamWith(grpc, REQUEST)
  reading.pause()
  const work = await working
  const frame = Buffer.alloc(64, 'a')
  // More than the stream takes at once, so that some wait in every queue on the way.
  for (let items = 0; items < 3000; items++) work.respond(frame, true)
  frame.fill('b')
  work.respond('', false)
  const ended = readAll(reading)
  reading.resume()
  const { messages } = await ended
  expect(messages).toHaveLength(3000)
  expect(messages.some(({ prediction }) => prediction.includes('b'))).toBe(false)
})
