import { describe, expect, test } from '@jest/globals'
import { runHandler, type TestHandler } from 'torchserve-ts/testing'
import Count from '../../model-store/count/handler.ts'
import type { Produced } from '../../model-store/count/runs.ts'

/** One Count for several runs, as in one worker. */
function shared(): TestHandler {
  const count = new Count()
  return { handle: (requests, context) => count.handle(requests, context) }
}

async function produced(handler: TestHandler, id: string): Promise<Produced> {
  const { responses } = await runHandler(handler, [{ query: 'produced', id }])
  expect(responses[0]!.contentType).toBe('application/json')
  return JSON.parse(responses[0]!.body.toString()) as Produced
}

describe('count', () => {
  test('streams its items one by one, each with its number, padded to its size', async () => {
    const { responses } = await runHandler(Count, [{ n: 12, size: 20, delay: 0 }])
    const { items, contentType, streamed, error } = responses[0]!
    expect(error).toBeUndefined()
    expect(streamed).toBe(true)
    expect(contentType).toBe('text/plain; charset=utf-8')
    expect(items).toEqual(Array.from({ length: 12 }, (_, i) => `${`${i + 1}`.padEnd(19)}\n`))
  })

  test('waits between two items, not before the first or after the last', async () => {
    expect((await runHandler(Count, [{ n: 1, delay: 1_000_000 }])).responses[0]!.items).toHaveLength(1)
    const start = performance.now()
    await runHandler(Count, [{ n: 3, delay: 50 }])
    expect(performance.now() - start).toBeGreaterThanOrEqual(98)
  })

  test('makes each item after the first when it is asked for it, if it is gated', async () => {
    const handler = shared()
    const look = async (): Promise<number> => {
      const { items } = await produced(handler, 'g')
      await runHandler(handler, [{ query: 'next', id: 'g' }])
      return items
    }
    const made: Promise<number>[] = []
    const { responses } = await runHandler(handler, [{ n: 4, gated: true, id: 'g' }], {
      onItem: () => {
        made.push(look())
      },
    })
    expect(await Promise.all(made)).toEqual([1, 2, 3, 4])
    expect(responses[0]!.items).toEqual(['1\n', '2\n', '3\n', '4\n'])
  })

  test('gives all items as one answer when it is asked not to stream', async () => {
    const { responses } = await runHandler(Count, [{ n: 3, delay: 1, stream: false }])
    expect(responses[0]).toMatchObject({ streamed: false, items: ['1\n2\n3\n'], status: 200 })
  })

  test('of no items is an empty answer', async () => {
    const { responses } = await runHandler(Count, [{ n: 0 }])
    expect(responses[0]).toMatchObject({ items: [], error: undefined, status: 200 })
  })

  test('stops at once when it is cancelled in a pause, and knows when', async () => {
    const handler = shared()
    const controller = new AbortController()
    const run = runHandler(handler, [{ n: 10, delay: 1_000_000, id: 'r' }], {
      signal: controller.signal,
      onItem: async () => {
        expect((await produced(handler, 'r')).state).toBe('running')
        controller.abort()
      },
    })
    const { responses } = await run
    expect(responses[0]!.error?.code).toBe('CANCELLED')
    const after = await produced(handler, 'r')
    expect(after).toMatchObject({ id: 'r', state: 'cancelled', items: 1, bytes: 2 })
    expect(after.endedAt! - after.lastItemAt!).toBeLessThan(60_000)
    expect(after.endedMsAgo!).toBeLessThan(60_000)
  })

  test('produces no more than the window while its reader does not read, and goes on when it does', async () => {
    const handler = shared()
    let read = (): void => undefined
    const reading = new Promise<void>((resolve) => (read = resolve))
    let seen = 0
    const run = runHandler(handler, [{ n: 100, size: 1000, delay: 0, id: 'slow' }], {
      window: 10_000,
      onItem: async () => {
        seen += 1
        await reading
      },
    })
    await new Promise((resolve) => setImmediate(resolve))
    await new Promise((resolve) => setImmediate(resolve))
    const standing = await produced(handler, 'slow')
    expect(standing.state).toBe('running')
    expect(standing.items).toBeGreaterThan(5)
    expect(standing.items).toBeLessThan(15)
    expect(seen).toBe(standing.items)
    read()
    const { responses } = await run
    expect(responses[0]!.body.byteLength).toBe(100_000)
    expect(await produced(handler, 'slow')).toMatchObject({ state: 'finished', items: 100, bytes: 100_000 })
  })

  test('serves the requests of a batch beside each other, a bad one among them', async () => {
    const { responses } = await runHandler(Count, [{ n: 2, delay: 5 }, { n: -1 }, { n: 3, delay: 0 }])
    expect(responses.map((response) => response.items.join(''))).toEqual(['1\n2\n', '', '1\n2\n3\n'])
    expect(responses[1]!.error).toMatchObject({ code: 'HANDLER_REJECTED', status: 400 })
  })

  test('says that it does not know a run', async () => {
    expect(await produced(shared(), 'nobody')).toEqual({ id: 'nobody', state: 'unknown', items: 0, bytes: 0 })
  })
})
