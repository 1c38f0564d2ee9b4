import { expect, test } from '@jest/globals'
import { Backoff } from '../../frontend/workers/backoff.ts'

test('one quick try, then TorchServe’s row of seconds, whose last one stays', () => {
  const backoff = new Backoff(1_000_000)
  const pauses = Array.from({ length: 20 }, () => backoff.next(0))
  const row = [100, 1000, 1000, 2000, 3000, 5000, 8000, 13_000, 21_000, 34_000, 55_000, 89_000, 144_000]
  expect(pauses.slice(0, row.length)).toEqual(row)
  expect(pauses.slice(-3)).toEqual([1_597_000, 1_597_000, 1_597_000])
})

test('gives up maxRetryTimeoutInSec after the first death, not before', () => {
  const backoff = new Backoff(5)
  expect(backoff.next(1000)).toBe(100)
  expect(backoff.next(5999)).toBe(1000)
  expect(backoff.next(6000)).toBeUndefined()
})

test('0 means no retries', () => {
  expect(new Backoff(0).next(0)).toBeUndefined()
})

test('a worker that was ready for 10 s has recovered: its row and its time start anew', () => {
  const backoff = new Backoff(5)
  expect([backoff.next(0), backoff.next(1)]).toEqual([100, 1000])
  backoff.ready(2000)
  expect(backoff.next(12_000)).toBe(100)
  expect(backoff.next(16_999)).toBe(1000)
})

test('a worker that was ready for less than 10 s has not', () => {
  const backoff = new Backoff(100)
  expect([backoff.next(0), backoff.next(1)]).toEqual([100, 1000])
  backoff.ready(2000)
  expect([backoff.next(11_999), backoff.next(12_000)]).toEqual([1000, 2000])
})

test('the time before it was ready counts once only: a second death soon after is not a recovery', () => {
  const backoff = new Backoff(100)
  backoff.ready(0)
  expect(backoff.next(10_000)).toBe(100)
  expect(backoff.next(30_000)).toBe(1000)
})
