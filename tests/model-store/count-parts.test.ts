import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { makeItem, Pause } from '../../model-store/count/items.ts'
import { readParameters } from '../../model-store/count/parameters.ts'
import { Runs } from '../../model-store/count/runs.ts'

describe('count: items', () => {
  test('every item starts with its number, ends with a newline and has its size', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 0, max: 5000 }), (k, size) => {
        const text = makeItem(k, size).toString()
        expect(text).toMatch(/^\d+ *\n$/)
        expect(parseInt(text, 10)).toBe(k)
        expect(text.length).toBe(Math.max(size, String(k).length + 1))
      }),
    )
  })
})

describe('count: parameters', () => {
  test('are the same from JSON, JSON bytes, JSON text, a part `data` and form fields', () => {
    const json = '{"id":"a","n":5,"size":100,"delay":20}'
    const expected = { id: 'a', n: 5, size: 100, delay: 20, gated: false, stream: true }
    const field = (text: string): Buffer => Buffer.from(text)
    expect(readParameters({ body: JSON.parse(json) })).toEqual(expected)
    expect(readParameters({ body: Buffer.from(json) })).toEqual(expected)
    expect(readParameters({ body: json })).toEqual(expected)
    expect(readParameters({ data: Buffer.from(json) })).toEqual(expected)
    const form = { id: field('a'), n: field('5'), size: field('100'), delay: field('20') }
    expect(readParameters(form)).toEqual(expected)
  })

  test('have defaults', () => {
    expect(readParameters({ body: Buffer.alloc(0) })).toEqual({
      id: undefined,
      n: 10,
      size: 0,
      delay: 100,
      gated: false,
      stream: true,
    })
  })

  test.each([
    [{ n: -1 }, 'n must be'],
    [{ n: 1.5 }, 'n must be'],
    [{ n: 'many' }, 'n must be'],
    [{ n: '' }, 'n must be'],
    [{ n: null, size: 1e12 }, 'size must be'],
    [{ delay: Infinity }, 'delay must be'],
    [{ id: '' }, 'id must be'],
    [{ id: 'x'.repeat(201) }, 'id must be'],
    [{ stream: 'no' }, 'stream must be'],
    [{ gated: 1 }, 'gated must be'],
    [{ stream: false, n: 1_000_000 }, 'Without stream'],
    [{ query: 'produced' }, 'requires the id'],
    [{ query: 'other', id: 'a' }, 'query must be'],
    [{ number: 3 }, 'Parameter number is not supported'],
  ])('that are bad are refused with status 400: %j', (body, message) => {
    const read = (): unknown => readParameters({ body })
    expect(read).toThrow(message)
    expect(read).toThrow(expect.objectContaining({ name: 'PredictionException', code: 400 }))
  })

  test('refuse a body that is no object', () => {
    for (const body of ['nonsense', '[1]', '7', [1], 7]) {
      expect(() => readParameters({ body })).toThrow(/body/)
    }
  })
})

describe('count: pause', () => {
  test('ends when its time is over and leaves the signal alone', async () => {
    const controller = new AbortController()
    const start = performance.now()
    await Pause.for(20, controller.signal)
    expect(performance.now() - start).toBeGreaterThanOrEqual(19)
    controller.abort()
  })

  test('does not begin when the signal has aborted before', async () => {
    await Pause.for(1_000_000, AbortSignal.abort())
  })

  test('ends at once when the signal aborts, and its timer with it', async () => {
    const controller = new AbortController()
    const pause = Pause.for(1_000_000, controller.signal)
    const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
    const before = timers()
    controller.abort()
    await pause
    expect(timers()).toBe(before - 1)
  })
})

describe('count: runs', () => {
  test('tell how far a run is, and how it ended', () => {
    const runs = new Runs()
    const run = runs.start('a')
    run.made(10)
    run.made(10)
    expect(runs.produced('a')).toMatchObject({ state: 'running', items: 2, bytes: 20, endedAt: undefined })
    runs.end(run, 'cancelled')
    const produced = runs.produced('a')
    expect(produced).toMatchObject({ id: 'a', state: 'cancelled', items: 2, bytes: 20 })
    expect(produced.endedAt).toBeGreaterThanOrEqual(produced.lastItemAt!)
    expect(produced.lastItemMsAgo).toBeGreaterThanOrEqual(0)
  })

  test('do not know a name that nobody used', () => {
    expect(new Runs().produced('x')).toEqual({ id: 'x', state: 'unknown', items: 0, bytes: 0 })
  })

  test('keep a bounded number of ended runs, and all that go on', () => {
    const runs = new Runs(3)
    const first = runs.start('goes on')
    first.made(1)
    for (let i = 0; i < 10; i += 1) runs.end(runs.start(`r${i}`), 'finished')
    expect(runs.produced('r6').state).toBe('unknown')
    expect(runs.produced('r7').state).toBe('finished')
    expect(runs.produced('goes on').state).toBe('running')
  })

  test('of the same name: the later one is told about', () => {
    const runs = new Runs()
    const first = runs.start('a')
    const second = runs.start('a')
    second.made(5)
    runs.end(first, 'finished')
    expect(runs.produced('a')).toMatchObject({ state: 'running', items: 1 })
    runs.end(second, 'failed')
    expect(runs.produced('a').state).toBe('failed')
  })
})
