import { afterEach, beforeEach, describe, expect, jest, test } from '@jest/globals'
import { BusyPoll } from '../../protocol/busy-poll.ts'

let now = 1000
/** What waits for the next turn of the event loop. */
let immediates: (() => void)[] = []

beforeEach(() => {
  immediates = []
  jest.spyOn(performance, 'now').mockImplementation(() => now)
  jest.spyOn(globalThis, 'setImmediate').mockImplementation(((callback: () => void) => {
    immediates.push(callback)
  }) as unknown as typeof setImmediate)
})
afterEach(() => {
  jest.restoreAllMocks()
})

/** Turns of the event loop, each of a 64th of a millisecond, until it sleeps or `most` have passed. */
function turns(most = 1000): number {
  let count = 0
  while (immediates.length > 0 && count < most) {
    count += 1
    now += 1 / 64
    for (const callback of immediates.splice(0)) callback()
  }
  return count
}

/** Messages whose answers each take this many milliseconds. */
function answers(poll: BusyPoll, count: number, ms: number): void {
  for (let i = 0; i < count; i += 1) {
    poll.sent()
    now += ms
    poll.received(now)
  }
  turns()
}

describe('while answers are short', () => {
  test('the event loop does not sleep before one comes, or the time is over', () => {
    const poll = new BusyPoll(0.25)
    answers(poll, 20, 0.0625)
    poll.sent()
    expect(turns()).toBe(16)
    poll.sent()
    expect(turns(5)).toBe(5)
    poll.received(now)
    expect(turns()).toBe(1)
  })

  test('one turn of polling serves all messages', () => {
    const poll = new BusyPoll(0.25)
    answers(poll, 20, 0.0625)
    for (let i = 0; i < 3; i += 1) poll.sent()
    expect(immediates).toHaveLength(1)
  })

  test('one long pause does not end it; several do, until answers are short again', () => {
    const poll = new BusyPoll(0.25)
    const polls = (): boolean => {
      poll.sent()
      const polled = turns() > 0
      poll.received(now)
      return polled
    }
    answers(poll, 30, 0.0625)
    answers(poll, 1, 60_000)
    expect(polls()).toBe(true)
    answers(poll, 3, 60_000)
    expect(polls()).toBe(false)
    answers(poll, 30, 0.0625)
    expect(polls()).toBe(true)
  })
})

test('an answer takes as long as the first message waits for it', () => {
  const poll = new BusyPoll(0.25)
  answers(poll, 30, 0.0625)
  for (let i = 0; i < 30; i += 1) {
    for (let message = 0; message < 8; message += 1) {
      poll.sent()
      now += 0.0625
    }
    poll.received(now)
    turns()
  }
  poll.sent()
  expect(immediates).toEqual([])
})

test('nothing is polled for at first, for answers as long as the limit, without a limit, and for what nobody asked', () => {
  const poll = new BusyPoll(0.25)
  poll.sent()
  expect(immediates).toEqual([])
  answers(poll, 100, 0.25)
  poll.sent()
  expect(immediates).toEqual([])
  const never = new BusyPoll(0)
  answers(never, 100, 0.0625)
  never.sent()
  expect(immediates).toEqual([])
  const unasked = new BusyPoll(0.25)
  for (let i = 0; i < 100; i += 1) unasked.received(now)
  unasked.sent()
  expect(immediates).toEqual([])
})
