import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import { beatFor, type Beating } from '../../../frontend/edge/http/sse.ts'

class Stream implements Beating {
  lastWrite = 0
  beats = 0
  ended = false
  readonly heartbeatMs: number

  constructor(heartbeatMs: number) {
    this.heartbeatMs = heartbeatMs
  }

  say(): void {
    this.lastWrite = performance.now()
  }

  beat(): void {
    this.beats += 1
    this.say()
  }
}

/** The timer notices an end only when it fires the next time. */
function end(...streams: Stream[]): void {
  for (const stream of streams) stream.ended = true
  jest.advanceTimersByTime(250)
}

beforeEach(() => {
  jest.useFakeTimers()
})

afterEach(() => {
  jest.useRealTimers()
})

test('a stream that says something is left alone; one that is silent beats once per interval', () => {
  const busy = new Stream(2000)
  const silent = new Stream(2000)
  beatFor(busy)
  beatFor(silent)
  for (let s = 0; s < 10; s += 1) {
    jest.advanceTimersByTime(1000)
    busy.say()
  }
  expect([busy.beats, silent.beats]).toEqual([0, 5])
  end(busy, silent)
})

test('the silence counts from the opening and from the last bytes', () => {
  const stream = new Stream(1000)
  jest.advanceTimersByTime(5000)
  beatFor(stream)
  jest.advanceTimersByTime(750)
  stream.say()
  jest.advanceTimersByTime(750)
  expect(stream.beats).toBe(0)
  jest.advanceTimersByTime(250)
  expect(stream.beats).toBe(1)
  end(stream)
})

test('an ended stream beats no more, and the last one takes the timer with it', () => {
  const [one, two] = [new Stream(500), new Stream(500)]
  beatFor(one)
  beatFor(two)
  one.ended = true
  jest.advanceTimersByTime(2000)
  expect([one.beats, two.beats]).toEqual([0, 4])
  expect(jest.getTimerCount()).toBe(1)
  end(two)
  expect(jest.getTimerCount()).toBe(0)
})
