import { afterEach, beforeEach, expect, test } from '@jest/globals'
import { readAll, type GrpcStream } from '../support/grpc-clients.ts'
import { REQUEST, startGrpc, streamWith, type RunningGrpc } from './start-grpc.ts'
import type { Work } from './fake-models.ts'

const MB = 1024 * 1024

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
})

afterEach(() => grpc.close())

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
  }

  run(): void {
    while (!this.#work.job.ended) {
      const last = this.bytes >= this.#total
      const room = this.#work.respond(last ? '' : this.#item, !last)
      if (!last) this.bytes += this.#item.byteLength
      if (!room && !last) {
        this.pauses++
        return
      }
    }
  }
}

/** Starts a stream that its reader stops after the first message. */
async function stalledStream(
  itemBytes: number,
): Promise<{ reading: GrpcStream<unknown>; producer: Producer }> {
  const working = grpc.models.nextWork()
  const reading = streamWith(grpc, REQUEST)
  const first = new Promise<void>((resolve) => {
    reading.once('data', () => {
      reading.pause()
      resolve()
    })
  })
  const producer = new Producer(await working, itemBytes, 200 * MB)
  producer.run()
  await first
  return { reading, producer }
}

async function wholeStream(itemBytes: number, bytes: number): Promise<number> {
  const working = grpc.models.nextWork()
  const reading = readAll(streamWith(grpc, REQUEST))
  const producer = new Producer(await working, itemBytes, bytes)
  producer.run()
  const { messages, error } = await reading
  expect(error).toBeUndefined()
  return messages.length
}

test.each([100, 65_536, MB])(
  'readers that stop in streams of %i-byte items stop their handlers, others on the connection go on',
  async (itemBytes) => {
    const stalled = [await stalledStream(itemBytes), await stalledStream(itemBytes)]
    expect(await wholeStream(65_536, 4 * MB)).toBe(65)
    const before = stalled.map(({ producer }) => producer.bytes)
    expect(await wholeStream(65_536, 4 * MB)).toBe(65)
    const bytes = stalled.map(({ producer }) => producer.bytes)
    expect(bytes).toEqual(before)
    for (const count of bytes) expect(count).toBeLessThan(itemBytes === MB ? 4 * MB : MB)
    for (const { reading } of stalled) {
      const ended = readAll(reading)
      reading.cancel()
      reading.resume()
      await ended
    }
  },
)

test('a reader that goes on gets the rest', async () => {
  const working = grpc.models.nextWork()
  const reading = streamWith(grpc, REQUEST)
  const producer = new Producer(await working, 65_536, 8 * MB)
  reading.pause()
  producer.run()
  expect(producer.pauses).toBe(1)
  expect(await wholeStream(100, 10_000)).toBe(101)
  expect(producer.bytes).toBeLessThan(MB)
  const { messages } = await readAll(reading)
  expect(messages).toHaveLength(129)
  expect(producer.pauses).toBeGreaterThan(10)
})

test('an item that waits does not pin the memory it came in', async () => {
  const working = grpc.models.nextWork()
  const reading = streamWith(grpc, REQUEST)
  reading.pause()
  const work = await working
  const frame = Buffer.alloc(64, 'a')
  let items = 0
  // More than the stream takes at once, so that some wait in every queue on the way.
  for (; items < 3000; items++) work.respond(frame, true)
  frame.fill('b')
  work.respond('', false)
  const { messages } = await readAll(reading)
  expect(messages).toHaveLength(items + 1)
  expect(messages.some(({ prediction }) => prediction.includes('b'))).toBe(false)
})
