import { expect, test } from '@jest/globals'
import { FailureLimiter } from '../../frontend/auth/gatekeeper.ts'

const HOUR_MS = 3_600_000

function newLimiter(): {
  limiter: FailureLimiter
  clock: { now: number }
  guesses: (address: string) => number
} {
  const clock = { now: 0 }
  const limiter = new FailureLimiter(() => clock.now)
  /** Wrong tokens of an address that are looked at before it is locked out; at most 50. */
  const guesses = (address: string): number => {
    let count = 0
    for (; count < 50 && limiter.admits(address); count++) limiter.failed(address)
    return count
  }
  return { limiter, clock, guesses }
}

test('a silence, however long, gives an address ten guesses again and no more', () => {
  const { clock, guesses } = newLimiter()
  expect(guesses('10.0.0.1')).toBe(10)
  clock.now += 24 * HOUR_MS
  expect(guesses('10.0.0.1')).toBe(10)
})

test('a right token keeps its address from being locked out for an hour, then no longer', () => {
  const { limiter, clock, guesses } = newLimiter()
  limiter.passed('10.0.0.1')
  clock.now += HOUR_MS - 1
  expect(guesses('10.0.0.1')).toBe(50)
  clock.now += 1
  expect(guesses('10.0.0.1')).toBe(0)
})

test('wrong tokens beyond the tenth make the wait for the next no longer', () => {
  const { limiter, clock, guesses } = newLimiter()
  limiter.passed('10.0.0.1')
  clock.now += HOUR_MS - 1
  guesses('10.0.0.1')
  clock.now += 1_000
  expect(guesses('10.0.0.1')).toBe(1)
})

test('the address that failed longest ago is forgotten first', () => {
  const { limiter, guesses } = newLimiter()
  expect([guesses('10.0.0.1'), guesses('10.0.0.2')]).toEqual([10, 10])
  limiter.failed('10.0.0.1')
  for (let i = 0; i < 9_999; i++) limiter.failed(`10.1.${i >> 8}.${i & 255}`)
  expect(['10.0.0.1', '10.0.0.2'].map((address) => limiter.admits(address))).toEqual([false, true])
})
