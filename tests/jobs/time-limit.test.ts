import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { type Limited, TimeLimit } from '../../frontend/jobs/time-limit.ts'

class Waiter implements Limited {
  expiredAt: number | undefined

  expired(): void {
    this.expiredAt = performance.now()
  }
}

const MS = 100
let limit: TimeLimit

beforeEach(() => {
  jest.useFakeTimers()
  limit = new TimeLimit(MS, 'RESPONSE_TIMEOUT', 'no response', 'firstResponseTimeout')
})
afterEach(() => {
  jest.useRealTimers()
})

test('whatever begins and ends: exactly those expire that have not ended, each at its own time', () => {
  const step = fc.record({ pause: fc.nat(40), end: fc.option(fc.nat(30)) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const waiters: { waiter: Waiter; begun: number; ended?: number }[] = []
      for (const { pause, end } of steps) {
        const waiter = new Waiter()
        waiters.push({ waiter, begun: performance.now() })
        limit.begin(waiter)
        const other = end === null ? undefined : waiters[end % waiters.length]!
        if (other !== undefined && other.waiter.expiredAt === undefined && other.ended === undefined) {
          other.ended = performance.now()
          limit.end(other.waiter)
        }
        jest.advanceTimersByTime(pause)
      }
      jest.advanceTimersByTime(2 * MS)
      for (const { waiter, begun, ended } of waiters) {
        expect(waiter.expiredAt).toBe(ended === undefined ? begun + MS : undefined)
      }
      expect(jest.getTimerCount()).toBe(0)
    }),
  )
})

test('when the oldest is over its time, those that began later are not', () => {
  const [first, second] = [new Waiter(), new Waiter()]
  limit.begin(first)
  jest.advanceTimersByTime(40)
  limit.begin(second)
  jest.advanceTimersByTime(60)
  expect([first.expiredAt === undefined, second.expiredAt]).toEqual([false, undefined])
  jest.advanceTimersByTime(40)
  expect(second.expiredAt).toBe(performance.now())
})

test('a job that begins another limit when one expires does not disturb the others', () => {
  const [first, second] = [new Waiter(), new Waiter()]
  let times = 0
  first.expired = () => {
    if (++times === 1) limit.begin(first)
  }
  limit.begin(first)
  jest.advanceTimersByTime(1)
  limit.begin(second)
  jest.advanceTimersByTime(MS)
  expect([times, second.expiredAt]).toEqual([1, performance.now()])
  jest.advanceTimersByTime(MS)
  expect(times).toBe(2)
})

test('jobs that begin and end share one timer, which stops when it finds none', () => {
  for (let i = 0; i < 10; i++) {
    const waiter = new Waiter()
    limit.begin(waiter)
    jest.advanceTimersByTime(1)
    limit.end(waiter)
    expect(jest.getTimerCount()).toBe(1)
  }
  jest.advanceTimersByTime(MS)
  expect(jest.getTimerCount()).toBe(0)
})

test('a limit of 0 is none', () => {
  const none = new TimeLimit(0, 'RESPONSE_TIMEOUT', 'no response', 'firstResponseTimeout')
  const waiter = new Waiter()
  none.begin(waiter)
  expect(jest.getTimerCount()).toBe(0)
})
