import { expect, test } from '@jest/globals'
import { ServeError, type ServeErrorOptions } from '../../common/errors.ts'

test('an error of a begun request is the same one in everything else', () => {
  const options: Required<ServeErrorOptions> = {
    status: 418,
    reason: 'reason',
    param: 'param',
    detail: 'detail',
    said: 'said',
    absent: 'absent',
    isPrinted: true,
    retryAfterMs: 5,
    publicCause: 'public',
    cause: new Error('cause'),
    begun: false,
  }
  const error = new ServeError('INVALID_OUTPUT', 'message', options)
  const begun = error.asBegun()
  expect(new Map(Object.entries(begun))).toEqual(new Map(Object.entries(error)).set('begun', true))
  for (const [name, value] of Object.entries({ ...options, begun: true }))
    expect(begun[name as keyof ServeError]).toBe(value)
  expect([begun.message, begun.stack]).toEqual(['message', error.stack])
  expect(begun.asBegun()).toBe(begun)
})
