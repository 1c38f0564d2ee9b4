import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { RollbackRule } from '../../frontend/models/rollback-rule.ts'

const RULE = { maxErrorPercent: 10, minRequests: 20, windowSeconds: 60 }

/** What the rule says at the last of these requests. */
function last(rule: RollbackRule, requests: readonly (readonly [isError: boolean, at: number])[]) {
  return requests.map(([isError, at]) => rule.ended(isError, at)).at(-1)
}

function many(count: number, isError: boolean, at = 0): [boolean, number][] {
  return Array.from({ length: count }, () => [isError, at])
}

test('too few requests decide nothing, whatever their outcome', () => {
  const rule = new RollbackRule(RULE)
  expect(last(rule, many(19, true))).toBeUndefined()
  expect(rule.ended(true, 0)).toBe('20 of 20 requests failed within 60 s: 100 %, more than 10 %')
})

test('as many errors as allowed are allowed, one more is not', () => {
  const allowed = [...many(18, false), ...many(2, true)]
  expect(last(new RollbackRule(RULE), allowed)).toBeUndefined()
  expect(last(new RollbackRule(RULE), [...allowed, [true, 0]])).toBe(
    '3 of 21 requests failed within 60 s: 14.3 %, more than 10 %',
  )
})

test('a rule of 0 % lets no error pass', () => {
  const rule = new RollbackRule({ ...RULE, maxErrorPercent: 0 })
  expect(last(rule, many(19, false))).toBeUndefined()
  expect(rule.ended(true, 0)).toContain('1 of 20')
})

test('a success may be the request that makes enough of them', () => {
  expect(last(new RollbackRule(RULE), [...many(19, true), [false, 0]])).toContain('19 of 20')
})

test('what has left the window no longer counts', () => {
  const rule = new RollbackRule(RULE)
  last(rule, many(19, true, 1_000))
  expect(rule.ended(true, 61_001)).toBeUndefined()
  expect(last(rule, many(18, true, 61_002))).toBeUndefined()
  expect(rule.ended(true, 61_003)).toContain('20 of 20')
})

test('errors that have left the window do not count against the successes in it', () => {
  const rule = new RollbackRule(RULE)
  last(rule, many(19, true, 1_000))
  expect(last(rule, many(40, false, 61_001))).toBeUndefined()
})

test('what is still within it counts', () => {
  const rule = new RollbackRule(RULE)
  last(rule, many(19, true, 1_000))
  expect(rule.ended(true, 57_999)).toContain('20 of 20')
})

test('late errors of requests that have left the window are at most all of those in it', () => {
  const rule = new RollbackRule(RULE)
  last(rule, many(19, false, 1_000))
  last(rule, many(19, true, 70_000))
  for (let late = 0; late < 19; late += 1) expect(rule.failedLate(70_000)).toBeUndefined()
  expect(rule.ended(true, 70_000)).toBe('20 of 20 requests failed within 60 s: 100 %, more than 10 %')
})

/** The rule as its documentation says it, with a list instead of counts. */
function expected(requests: readonly (readonly [boolean, number])[]): boolean {
  const [, now] = requests.at(-1)!
  const partMs = 3_000
  const recent = requests.filter(([, at]) => Math.floor(now / partMs) - Math.floor(at / partMs) < 20)
  const errors = recent.filter(([isError]) => isError).length
  return recent.length >= RULE.minRequests && errors * 100 > RULE.maxErrorPercent * recent.length
}

test('property: it decides as a list of the requests of the window would', () => {
  const steps = fc.array(fc.tuple(fc.boolean(), fc.integer({ min: 0, max: 9_000 })), {
    minLength: 1,
    maxLength: 120,
  })
  fc.assert(
    fc.property(steps, fc.integer({ min: 0, max: 1_000_000 }), (list, start) => {
      const rule = new RollbackRule(RULE)
      const seen: [boolean, number][] = []
      let now = start
      for (const [isError, pause] of list) {
        now += pause
        seen.push([isError, now])
        expect(rule.ended(isError, now) !== undefined).toBe(expected(seen))
      }
    }),
  )
})
