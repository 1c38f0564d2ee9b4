import { expect, test } from '@jest/globals'
import type { RateLimits } from '../../frontend/auth/principal.ts'
import { RateLimiter, Visit } from '../../frontend/auth/rate-limiter.ts'

const NONE: RateLimits = {}

function rig({ address = NONE, key = NONE }: { address?: RateLimits; key?: RateLimits } = {}) {
  const clock = { now: 0 }
  const limiter = new RateLimiter({ address, key, now: () => clock.now })
  const visit = (from: string, name?: string, limits?: RateLimits) => {
    const traffic = { bytes: 0 }
    const one = new Visit(limiter, traffic)
    one.from(from)
    if (name !== undefined) one.by({ name, kind: 'api key', limits })
    return { traffic, end: () => one.end(), visit: one }
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
  expect(admitted(20, 'a', 'one', limits)).toBe(5)
  expect(refusal(() => visit('a', 'one', limits))).toMatchObject({ retryAfterMs: 200, retryAfter: '1' })
  clock.now += 400
  expect(admitted(20, 'a', 'one', limits)).toBe(2)
  clock.now += 60_000
  expect(admitted(20, 'a', 'one', limits)).toBe(5)
})

test('what a refused request would have used is not taken', () => {
  const { clock, admitted } = rig()
  const limits = { requestsPerSecond: 0.5 }
  expect(admitted(1, 'a', 'one', limits)).toBe(1)
  expect(admitted(1_000, 'a', 'one', limits)).toBe(0)
  clock.now += 2_000
  expect(admitted(10, 'a', 'one', limits)).toBe(1)
})

test('a key that is at its limit takes nothing from another of the same address', () => {
  const { admitted } = rig()
  expect(admitted(100, 'a', 'limited', { requestsPerSecond: 3 })).toBe(3)
  expect(admitted(1_000, 'a', 'free')).toBe(1_000)
  expect(admitted(100, 'a', 'other', { requestsPerSecond: 7 })).toBe(7)
})

test('limits of the configuration hold for keys that have none, and an entry may change one of them', () => {
  const { admitted } = rig({ key: { requestsPerSecond: 4, concurrentStreams: 1 } })
  expect(admitted(9, 'a', 'plain')).toBe(4)
  expect(admitted(9, 'a', 'own', { requestsPerSecond: 6 })).toBe(6)
  expect(admitted(9, 'a', 'free', { requestsPerSecond: 0 })).toBe(9)
})

test('open requests count until they end, also with limits that changed meanwhile', () => {
  const { visit } = rig()
  const first = visit('a', 'one', { concurrentStreams: 2 })
  const second = visit('a', 'one', { concurrentStreams: 2 })
  expect(refusal(() => visit('a', 'one', { concurrentStreams: 2 }))).toMatchObject({ retryAfter: '1' })
  expect(refusal(() => visit('a', 'one', { concurrentStreams: 1 }))).toBeDefined()
  first.end()
  first.end()
  visit('a', 'one', { concurrentStreams: 2 })
  expect(refusal(() => visit('a', 'one', { concurrentStreams: 2 }))).toBeDefined()
  second.end()
  visit('a', 'one', { concurrentStreams: 2 })
})

test('bytes are counted while a request is open; it runs on, and the next one waits until they are paid', () => {
  const { clock, visit } = rig()
  const limits = { bytesPerSecond: 1_000 }
  const stream = visit('a', 'one', limits)
  stream.traffic.bytes = 500
  visit('a', 'one', limits).end()
  clock.now += 100
  stream.traffic.bytes = 5_600
  expect(refusal(() => visit('a', 'one', limits)).retryAfter).toBe('5')
  clock.now += 4_000
  expect(refusal(() => visit('a', 'one', limits)).retryAfter).toBe('1')
  clock.now += 700
  visit('a', 'one', limits)
  stream.traffic.bytes = 9_600
  stream.end()
  expect(refusal(() => visit('a', 'one', limits)).retryAfter).toBe('4')
})

test('addresses are limited with a key and without; an IPv6 network is one address', () => {
  const { admitted } = rig({ address: { requestsPerSecond: 3 } })
  expect(admitted(9, '192.0.2.1')).toBe(3)
  expect(admitted(9, '192.0.2.1', 'key')).toBe(0)
  expect(admitted(9, '192.0.2.2', 'key')).toBe(3)
  expect(admitted(2, '2001:db8::1')).toBe(2)
  expect(admitted(9, '2001:db8::ffff:1')).toBe(1)
  expect(admitted(9, '2001:db8:0:1::1')).toBe(3)
})

test('any number of addresses and callers takes bounded memory, and open requests are not forgotten', () => {
  const { limiter, visit } = rig({ address: { concurrentStreams: 1 }, key: { requestsPerSecond: 1 } })
  const open = visit('198.51.100.1', 'open')
  for (let i = 0; i < 30_000; i++) visit(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`, `key ${i}`).end()
  expect(limiter.size).toBe(20_000)
  expect(refusal(() => visit('198.51.100.1')).message).toContain('this address')
  open.end()
  visit('198.51.100.1')
})

test('the headers for OpenAI’s clients say what is left', () => {
  const { clock, visit } = rig()
  const limits = { requestsPerSecond: 4 }
  visit('a', 'one', limits)
  const { visit: second } = visit('a', 'one', limits)
  clock.now += 125
  expect(second.headers()).toEqual([
    ...['x-ratelimit-limit-requests', '4'],
    ...['x-ratelimit-remaining-requests', '2'],
    ...['x-ratelimit-reset-requests', '0.375s'],
  ])
  expect(visit('a', 'free').visit.headers()).toEqual([])
})
