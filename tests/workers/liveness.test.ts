import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { Liveness } from '../../frontend/workers/worker-life.ts'

const INTERVAL_MS = 5000
const LIMIT_MS = 12_000

class Probe {
  readonly pings: number[] = []
  isIdle = true
  silences = 0
  readonly liveness = new Liveness(LIMIT_MS, {
    idle: () => this.isIdle,
    ping: (nonce) => this.pings.push(nonce),
    onSilent: () => (this.silences += 1),
  })
}

let probe: Probe

beforeEach(() => {
  jest.useFakeTimers()
  probe = new Probe()
})

afterEach(() => {
  probe.liveness.stop()
  jest.useRealTimers()
})

function pass(intervals: number): void {
  jest.advanceTimersByTime(intervals * INTERVAL_MS)
}

test('an idle worker that answers is asked every 5 s, each time with another number', () => {
  probe.liveness.start()
  for (let k = 0; k < 100; k += 1) {
    pass(1)
    probe.liveness.answered(probe.pings.at(-1)!)
  }
  expect(new Set(probe.pings).size).toBe(100)
  expect(probe.silences).toBe(0)
})

test('an idle worker that does not answer for the limit is silent; it is asked once', () => {
  probe.liveness.start()
  pass(3)
  // 10 s after the question.
  expect([probe.pings.length, probe.silences]).toEqual([1, 0])
  pass(1)
  expect([probe.pings.length, probe.silences]).toEqual([1, 1])
})

test('the answer to an earlier question does not count', () => {
  probe.liveness.start()
  pass(1)
  probe.liveness.answered(probe.pings[0]!)
  pass(1)
  probe.liveness.answered(probe.pings[0]!)
  pass(3)
  expect([probe.pings.length, probe.silences]).toEqual([2, 1])
})

test('a busy worker is not asked, and what it was asked while it was idle is forgotten', () => {
  probe.liveness.start()
  pass(1)
  probe.isIdle = false
  pass(20)
  expect([probe.pings.length, probe.silences]).toEqual([1, 0])
  probe.isIdle = true
  pass(3)
  expect([probe.pings.length, probe.silences]).toEqual([2, 0])
})

test('nothing happens after stop, and a new start forgets the question before', () => {
  probe.liveness.start()
  pass(1)
  probe.liveness.stop()
  pass(10)
  expect([probe.pings.length, probe.silences]).toEqual([1, 0])
  probe.liveness.start()
  pass(3)
  expect([probe.pings.length, probe.silences]).toEqual([2, 0])
})
