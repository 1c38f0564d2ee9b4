import { expect, test } from '@jest/globals'
import type { RateLimits } from '../../frontend/auth/principal.ts'
import { RateLimiter } from '../../frontend/auth/rate-limiter.ts'

function rig(key: RateLimits = {}) {
  const clock = { now: 0 }
  const limiter = new RateLimiter({ key, now: () => clock.now })
  const visit = (name: string, limits?: RateLimits) => {
    const traffic = { bytes: 0 }
    const one = limiter.visit({ name, kind: 'api key', limits }, traffic)
    return { traffic, end: () => one?.end(), visit: one }
  }
  /** How many of so many visits are let in; each ends at once. */
  const admitted = (count: number, ...who: Parameters<typeof visit>): number => {
    let letIn = 0
    for (let i = 0; i < count; i++) {
      try {
        visit(...who).end()
        letIn++
      } catch (error) {
        expect(error).toMatchObject({ code: 'RATE_LIMITED' })
      }
    }
    return letIn
  }
  return { clock, limiter, visit, admitted }
}

function refusal(work: () => unknown): { retryAfterMs?: number; retryAfter?: string; message: string } {
  try {
    work()
  } catch (error) {
    expect(error).toMatchObject({ code: 'RATE_LIMITED' })
    return error as { message: string }
  }
  throw new Error('It was let in')
}

test('a key may start its requests of a second at once, then one each time that its rate allows', () => {
  const { clock, admitted, visit } = rig()
  const limits = { requestsPerSecond: 5 }
  expect(admitted(20, 'one', limits)).toBe(5)
  expect(refusal(() => visit('one', limits))).toMatchObject({ retryAfterMs: 200, retryAfter: '1' })
  clock.now += 400
  expect(admitted(20, 'one', limits)).toBe(2)
  clock.now += 60_000
  expect(admitted(20, 'one', limits)).toBe(5)
})

test('what a refused request would have used is not taken', () => {
  const { clock, admitted } = rig()
  const limits = { requestsPerSecond: 0.5 }
  expect(admitted(1, 'one', limits)).toBe(1)
  expect(admitted(1_000, 'one', limits)).toBe(0)
  clock.now += 2_000
  expect(admitted(10, 'one', limits)).toBe(1)
})

test('a key that is at its limit takes nothing from another', () => {
  const { admitted } = rig()
  expect(admitted(100, 'limited', { requestsPerSecond: 3 })).toBe(3)
  expect(admitted(1_000, 'free')).toBe(1_000)
  expect(admitted(100, 'other', { requestsPerSecond: 7 })).toBe(7)
})

test('limits of the configuration hold for keys that have none, and an entry may change one of them', () => {
  const { admitted } = rig({ requestsPerSecond: 4, concurrentStreams: 1 })
  expect(admitted(9, 'plain')).toBe(4)
  expect(admitted(9, 'own', { requestsPerSecond: 6 })).toBe(6)
  expect(admitted(9, 'free', { requestsPerSecond: 0 })).toBe(9)
})

test('open requests count until they end, also with limits that changed meanwhile', () => {
  const { visit } = rig()
  const first = visit('one', { concurrentStreams: 2 })
  const second = visit('one', { concurrentStreams: 2 })
  expect(refusal(() => visit('one', { concurrentStreams: 2 }))).toMatchObject({ retryAfter: '1' })
  expect(refusal(() => visit('one', { concurrentStreams: 1 }))).toBeDefined()
  first.end()
  first.end()
  visit('one', { concurrentStreams: 2 })
  expect(refusal(() => visit('one', { concurrentStreams: 2 }))).toBeDefined()
  second.end()
  visit('one', { concurrentStreams: 2 })
})

test('bytes are counted while a request is open; it runs on, and the next one waits until they are paid', () => {
  const { clock, visit } = rig()
  const limits = { bytesPerSecond: 1_000 }
  const stream = visit('one', limits)
  stream.traffic.bytes = 500
  visit('one', limits).end()
  clock.now += 100
  stream.traffic.bytes = 5_600
  expect(refusal(() => visit('one', limits)).retryAfter).toBe('5')
  clock.now += 4_000
  expect(refusal(() => visit('one', limits)).retryAfter).toBe('1')
  clock.now += 700
  visit('one', limits)
  stream.traffic.bytes = 9_600
  stream.end()
  expect(refusal(() => visit('one', limits)).retryAfter).toBe('4')
})

test('any number of callers takes bounded memory, and open requests are not forgotten', () => {
  const { limiter, visit } = rig({ concurrentStreams: 1 })
  const open = visit('open')
  for (let i = 0; i < 15_000; i++) visit(`key ${i}`).end()
  expect(limiter.size).toBe(10_000)
  expect(refusal(() => visit('open')).message).toContain('this key')
  open.end()
  visit('open')
})

test('the headers for OpenAI’s clients say what is left', () => {
  const { clock, visit } = rig()
  const limits = { requestsPerSecond: 4 }
  visit('one', limits)
  const { visit: second } = visit('one', limits)
  clock.now += 125
  expect(second?.headers()).toEqual([
    ...['x-ratelimit-limit-requests', '4'],
    ...['x-ratelimit-remaining-requests', '2'],
    ...['x-ratelimit-reset-requests', '0.375s'],
  ])
  expect(visit('free').visit).toBeUndefined()
})
