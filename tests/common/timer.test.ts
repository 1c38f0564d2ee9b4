import { afterEach, expect, jest, test } from '@jest/globals'
import { MAX_TIMER_MS, startTimer } from '../../common/timer.ts'

afterEach(() => {
  jest.useRealTimers()
})

test.each([MAX_TIMER_MS + 1, 3e9, Infinity])('a delay of %d ms counts as the longest of Node', (ms) => {
  jest.useFakeTimers()
  const action = jest.fn()
  startTimer(action, ms)
  jest.advanceTimersByTime(MAX_TIMER_MS - 1)
  expect(action).not.toHaveBeenCalled()
  jest.advanceTimersByTime(1)
  expect(action).toHaveBeenCalledTimes(1)
})
