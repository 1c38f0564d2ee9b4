import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { Socket } from 'node:net'
import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { decodeFromWorker, encode } from '../../protocol/codec.ts'
import { FRAME, FrameDecoder, ITEM } from '../../protocol/frame.ts'
import type { FromWorker } from '../../protocol/messages.ts'
import { Outbox } from '../../protocol/outbox.ts'
import { socketPair } from '../support/socket-pair.ts'

/** Sizes around the outbox's limits: empty, small, around a large frame, around and above its buffer. */
const sizes = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 16_000, max: 17_000 }),
  fc.integer({ min: 65_000, max: 66_000 }),
)

const message = fc
  .record({ size: sizes, item: fc.boolean(), id: fc.nat(0xffffffff) })
  .map(({ size, item, id }): FromWorker & { type: 'response' } => ({
    type: 'response',
    id,
    body: Buffer.alloc(size, id & 0xff),
    ...(item ? { ts_stream_next: 'true' } : { contentType: 'text/plain' }),
  }))

/** All that matters of a message, quick to compare. */
function summary(got: FromWorker): string {
  if (got.type !== 'response') return got.type
  const hash = createHash('sha1').update(got.body).digest('hex')
  return `${got.id} ${got.ts_stream_next} ${got.contentType} ${got.body.byteLength} ${hash}`
}

test('whatever is added and whenever it is flushed: the same messages arrive in the same order', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.array(message, { maxLength: 30 }), { maxLength: 6 }), async (turns) => {
      const [near, far] = await socketPair()
      const got: string[] = []
      const decoder = new FrameDecoder(1_000_000, (chunk, from, to) =>
        got.push(summary(decodeFromWorker(chunk, from, to))),
      )
      far.on('data', (chunk: Buffer) => {
        decoder.push(chunk)
      })
      const outbox = new Outbox()
      for (const turn of turns) {
        for (const each of turn) encode(outbox, each)
        outbox.flush(near)
        expect(outbox.bytes).toBe(0)
        await new Promise((resolve) => setImmediate(resolve))
      }
      near.end()
      await once(far, 'end')
      expect(got).toEqual(turns.flat().map(summary))
    }),
    { numRuns: 60 },
  )
})

test('a reader that stops does not corrupt what comes after it resumes', async () => {
  const [near, far] = await socketPair()
  far.pause()
  const outbox = new Outbox()
  const count = 20_000
  for (let id = 0; id < count; id += 1) {
    encode(outbox, { type: 'response', id, body: Buffer.alloc(1000, id & 0xff), ts_stream_next: 'true' })
    if (id % 7 === 0) outbox.flush(near)
  }
  outbox.flush(near)
  expect(near.writableLength).toBeGreaterThan(1_000_000)
  let next = 0
  const decoder = new FrameDecoder(1_000_000, (chunk, from, to) => {
    const item = decodeFromWorker(chunk, from, to)
    expect(item).toMatchObject({ type: 'response', id: next })
    if (item.type === 'response') expect(item.body.every((byte) => byte === (next & 0xff))).toBe(true)
    next += 1
  })
  far.on('data', (chunk: Buffer) => {
    decoder.push(chunk)
  })
  far.resume()
  near.end()
  await once(far, 'end')
  expect(next).toBe(count)
})

test('16 answers, or 32 KiB of items, are worth sending before the turn is over', () => {
  const answers = new Outbox()
  for (let id = 1; id <= 16; id += 1) {
    expect(answers.isWorthSending).toBe(false)
    encode(answers, { type: 'response', id, body: Buffer.from('x') })
  }
  expect(answers.isWorthSending).toBe(true)
  const items = new Outbox()
  const body = Buffer.alloc(1000)
  for (let id = 1; id <= 32; id += 1) items.add(FRAME.response, ITEM, id, body)
  expect(items.isWorthSending).toBe(false)
  items.add(FRAME.response, ITEM, 33, body)
  expect(items.isWorthSending).toBe(true)
})

test('a large request or answer takes one buffer of its size, not several times as much', () => {
  const written: Uint8Array[] = []
  const socket = Object.assign(new Socket(), { write: (frame: Buffer) => written.push(frame) > 0 })
  const size = 4_000_000
  const body = Buffer.alloc(size)
  const outbox = new Outbox()
  encode(outbox, { type: 'response', id: 1, body })
  const request = { method: 'handle' as const, id: 1, requestId: 'a', headers: '', window: 1 }
  encode(outbox, { type: 'predict', requests: [{ ...request, parts: [{ name: 'body', data: body }] }] })
  outbox.flush(socket)
  expect(written.map((frame) => frame.byteLength > size)).toEqual([true, true])
  for (const frame of written) expect(frame.buffer.byteLength).toBeLessThan(size + 1_000)
})
