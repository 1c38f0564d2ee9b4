import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import fc from 'fast-check'
import { Allowance } from '../../common/byte-flow.ts'

const EVERY_MS = 10
const BURST = 4

let now = 0

beforeEach(() => {
  jest.spyOn(performance, 'now').mockImplementation(() => now)
})

afterEach(() => {
  jest.restoreAllMocks()
})

test('a burst goes at once, what follows keeps the pace, and a silence saves up for a burst again', () => {
  const allowance = new Allowance(EVERY_MS, BURST)
  const burst = (): number[] =>
    Array.from({ length: BURST + 1 }, () => {
      const { wait } = allowance
      allowance.use()
      return wait
    })
  expect(burst()).toEqual([0, 0, 0, 0, EVERY_MS])
  expect(allowance.wait).toBe(2 * EVERY_MS)
  now += 1000 * EVERY_MS
  expect(burst()).toEqual([0, 0, 0, 0, EVERY_MS])
})

test('whoever waits as long as it is told never goes more often than the burst and the pace allow', () => {
  const pauses = fc.array(fc.double({ min: 0, max: 100, noNaN: true }), { minLength: 1, maxLength: 50 })
  fc.assert(
    fc.property(pauses, (list) => {
      const allowance = new Allowance(EVERY_MS, BURST)
      const start = now
      for (const pause of list) {
        now += pause
        now += allowance.wait
        allowance.use()
      }
      expect(list.length).toBeLessThanOrEqual(BURST + (now - start) / EVERY_MS + 1e-6)
    }),
  )
})
