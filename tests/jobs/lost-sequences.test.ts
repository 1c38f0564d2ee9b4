import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { ServeError } from '../../common/errors.ts'
import type { SequenceQueueOptions } from '../../frontend/jobs/sequence-queue.ts'
import { failures, HEADERS, Setup } from './sequence-setup.ts'

beforeEach(() => {
  jest.useFakeTimers()
  failures.clear()
})
afterEach(() => {
  jest.useRealTimers()
})

describe('a worker that ends between two requests of a sequence', () => {
  const LOST = expect.objectContaining({
    code: 'NO_WORKER',
    message: expect.stringContaining('of sequence "a"'),
  })
  function lost(options: Partial<SequenceQueueOptions> = {}): Setup {
    const setup = new Setup(options)
    setup.crash(setup.round('a'))
    expect(setup.queue.hasSequence('a')).toBe(true)
    return setup
  }

  test('the next one is told so, once', () => {
    const setup = lost()
    expect(() => setup.add('a')).toThrow(LOST)
    expect(setup.queue.hasSequence('a')).toBe(false)
    setup.round('a')
  })

  test('not if it begins the sequence', () => {
    const setup = lost()
    expect(setup.workerOf(setup.add('a', { [HEADERS.start]: 'true' }))).toBeDefined()
  })

  test('not when the sequence would have ended by now', () => {
    const setup = lost()
    jest.advanceTimersByTime(1000)
    setup.round('a')
  })

  test('a request that runs on tells nothing; one that failed does', () => {
    const setup = new Setup()
    const leaving = setup.add('a')
    setup.queue.workerLost(setup.workerOf(leaving)!, new ServeError('WORKER_LOST', 'scaled away'))
    setup.answer(leaving)
    expect(() => setup.add('a')).toThrow(LOST)
    setup.crash(setup.workerOf(setup.add('a'))!)
    setup.round('a')
  })

  test('not if the request that ran on has ended the sequence', () => {
    const setup = new Setup()
    const leaving = setup.add('a')
    setup.queue.workerLost(setup.workerOf(leaving)!, new ServeError('WORKER_LOST', 'scaled away'))
    setup.answer(leaving, { [HEADERS.end]: 'a' })
    expect(setup.workerOf(setup.add('a'))).toBeDefined()
  })

  test('others are not told, and do not take its place', () => {
    const setup = new Setup()
    const first = setup.add('a', {}, 'ann')
    const worker = setup.workerOf(first)!
    setup.answer(first)
    setup.crash(worker)
    const other = setup.add('a', { [HEADERS.end]: 'true' }, 'bob')
    setup.answer(other)
    expect(() => setup.add('a', {}, 'ann')).toThrow(LOST)
  })

  test.each(['its handler ends it', 'it fails'])('nor do they make it forgotten: %s', (how) => {
    const setup = new Setup()
    const first = setup.add('a', {}, 'ann')
    const worker = setup.workerOf(first)!
    setup.answer(first)
    setup.crash(worker)
    const other = setup.add('a', {}, 'bob')
    if (how === 'it fails') setup.crash(setup.workerOf(other)!)
    else setup.answer(other, { [HEADERS.end]: 'a' })
    expect(() => setup.add('a', {}, 'ann')).toThrow(LOST)
  })

  test('as many are remembered as may be open, the latest', () => {
    const setup = lost({ maxSequences: 2 })
    for (const id of ['b', 'c']) setup.crash(setup.round(id))
    setup.round('a')
    expect(() => setup.add('c')).toThrow()
  })
})
