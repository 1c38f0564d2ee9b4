import { expect, test } from '@jest/globals'
import { Backoff, type StartEnd } from '../../frontend/workers/worker-life.ts'

const IDLE: StartEnd = { answered: false, byMachine: false }

test('one quick try, then TorchServe’s row of seconds, whose last one stays', () => {
  const backoff = new Backoff(1_000_000)
  const pauses = Array.from({ length: 20 }, () => backoff.next(0, IDLE))
  const row = [100, 1000, 1000, 2000, 3000, 5000, 8000, 13_000, 21_000, 34_000, 55_000, 89_000, 144_000]
  expect(pauses.slice(0, row.length)).toEqual(row)
  expect(pauses.slice(-3)).toEqual([1_597_000, 1_597_000, 1_597_000])
})

test('gives up maxRetryTimeoutInSec after the first death, not before', () => {
  const backoff = new Backoff(5)
  expect(backoff.next(1000, IDLE)).toBe(100)
  expect(backoff.next(5999, IDLE)).toBe(1000)
  expect(backoff.next(6000, IDLE)).toBeUndefined()
})

test('0 means no retries', () => {
  expect(new Backoff(0).next(0, IDLE)).toBeUndefined()
})

test('a worker that was ready for 10 s has recovered: its row and its time start anew', () => {
  const backoff = new Backoff(5)
  expect([backoff.next(0, IDLE), backoff.next(1, IDLE)]).toEqual([100, 1000])
  backoff.ready(2000)
  expect(backoff.next(12_000, IDLE)).toBe(100)
  expect(backoff.next(16_999, IDLE)).toBe(1000)
})

test('a worker that was ready for less than 10 s has not', () => {
  const backoff = new Backoff(100)
  expect([backoff.next(0, IDLE), backoff.next(1, IDLE)]).toEqual([100, 1000])
  backoff.ready(2000)
  expect([backoff.next(11_999, IDLE), backoff.next(12_000, IDLE)]).toEqual([1000, 2000])
})

test('the time before it was ready counts once only: a second death soon after is not a recovery', () => {
  const backoff = new Backoff(100)
  backoff.ready(0)
  expect(backoff.next(10_000, IDLE)).toBe(100)
  expect(backoff.next(30_000, IDLE)).toBe(1000)
})

test('a start that answered a request begins anew, however short it was', () => {
  const backoff = new Backoff(5)
  expect([backoff.next(0, IDLE), backoff.next(1, IDLE), backoff.idleStarts]).toEqual([100, 1000, 2])
  expect(backoff.next(60_000, { answered: true, byMachine: false })).toBe(100)
  expect([backoff.next(64_999, IDLE), backoff.next(65_000, IDLE)]).toEqual([1000, undefined])
})

test('a fault of the machine is retried without end, at least every 30 s, and takes nothing of the time', () => {
  const backoff = new Backoff(5)
  const fault: StartEnd = { answered: false, byMachine: true }
  const pauses = Array.from({ length: 100 }, (_, k) => backoff.next(k * 1000, fault))
  expect([pauses[0], pauses[1], Math.max(...(pauses as number[]))]).toEqual([100, 1000, 30_000])
  expect(backoff.next(200_000, IDLE)).toBeGreaterThan(0)
  expect(backoff.next(204_999, IDLE)).toBeGreaterThan(0)
  expect(backoff.next(205_000, IDLE)).toBeUndefined()
})
