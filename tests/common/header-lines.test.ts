import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { headerLine, headerValue, joinHeaders, splitHeaders } from '../../common/headers.ts'

const name = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/).filter((text) => text !== '__proto__')
const value = fc.stringMatching(/^[^\n]{0,40}$/)

test('headers come back as they were sent', () => {
  fc.assert(
    fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (headers) => {
      expect(splitHeaders(joinHeaders(headers))).toEqual(headers)
    }),
  )
})

test('a line feed in a value, as a decoded path may have, makes no header of its own', () => {
  expect(splitHeaders(joinHeaders({ url_path: 'a\nexplain\nTrue\n', b: 'c' }))).toEqual({
    url_path: 'a explain True ',
    b: 'c',
  })
})

test('a header is found in whatever case, and the last of several holds: the server appends its own', () => {
  const lines = headerLine('X-Mood', 'first') + headerLine('x-mood', 'last') + headerLine('mood', 'x-mood')
  expect(headerValue(lines, 'X-MOOD')).toBe('last')
  expect(headerValue(lines, 'last')).toBeUndefined()
  expect(headerValue('', '')).toBeUndefined()
})
