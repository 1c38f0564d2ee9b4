import { expect, test } from '@jest/globals'
import { Backlog } from '../../../frontend/workers/python/backlog.ts'

const message = (text: string) =>
  ({ type: 'response', id: 1, body: Buffer.from(text), ts_stream_next: 'true' }) as const

function takeAll(backlog: Backlog): string[] {
  const got: string[] = []
  const reader = {
    item: (chunk: Buffer, from: number, to: number) => got.push(chunk.toString('latin1', from, to)),
    message: ({ body }: { body: Uint8Array }) => got.push(`message ${String(body)}`),
  }
  while (backlog.cost > 0) backlog.take(reader)
  return got
}

test('keeps items of any size and messages in order', () => {
  const backlog = new Backlog()
  const large = 'L'.repeat(100_000)
  const add = (text: string) => backlog.addItem(Buffer.from(`<${text}>`), 1, 1 + text.length)
  for (const text of ['a', '', 'b', large, 'c']) add(text)
  backlog.addMessage(message('m'))
  add('d')
  expect(backlog.cost).toBe(100_000 + 5 + 7 * 64)
  expect(takeAll(backlog)).toEqual(['a', '', 'b', large, 'c', 'message m', 'd'])
})

test('what was taken stays as it is when more is added', () => {
  const backlog = new Backlog()
  backlog.addItem(Buffer.from('abc'), 0, 3)
  backlog.addItem(Buffer.from('def'), 0, 3)
  let taken: Buffer | undefined
  backlog.take({ item: (chunk) => (taken = chunk), message: () => undefined })
  const before = taken!.toString('latin1', 0, 6)
  backlog.addItem(Buffer.from('ghi'), 0, 3)
  expect(taken!.toString('latin1', 0, 6)).toBe(before)
  expect(takeAll(backlog)).toEqual(['def', 'ghi'])
})

test('what comes when all was taken is kept, too', () => {
  const backlog = new Backlog()
  for (const text of ['abc', 'def']) {
    backlog.addItem(Buffer.from(text), 0, 3)
    expect(takeAll(backlog)).toEqual([text])
  }
})

test('a client that reads as slowly as items come makes it keep no block for each', () => {
  const backlog = new Backlog()
  const blocks = new Set<Buffer>()
  const reader = { item: (chunk: Buffer) => blocks.add(chunk), message: () => undefined }
  const add = () => backlog.addItem(Buffer.from('abcd'), 0, 4)
  for (let i = 0; i < 1000; i += 1) add()
  for (let i = 0; i < 5000; i += 1) {
    backlog.take(reader)
    add()
  }
  expect(takeAll(backlog)).toHaveLength(1000)
  expect(blocks.size).toBeLessThanOrEqual(6)
})

test.each([1, 16, 1000, 30_000])('takes little more memory than it says, with items of %d bytes', (size) => {
  const before = process.memoryUsage()
  const backlog = new Backlog()
  const item = Buffer.alloc(size, 1)
  while (backlog.cost < 32 << 20) backlog.addItem(item, 0, size)
  const after = process.memoryUsage()
  const taken = after.arrayBuffers + after.heapUsed - before.arrayBuffers - before.heapUsed
  expect(taken).toBeLessThan(1.25 * backlog.cost)
})
