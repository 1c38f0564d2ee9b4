import { expect, test } from '@jest/globals'
import { targetOf } from '../../../frontend/edge/http/request-head.ts'

test('equal targets share one object, but only of the recent ones and short ones', () => {
  const first = targetOf('/first')
  expect(targetOf('/first')).toBe(first)
  for (let i = 0; i < 500; i++) targetOf(`/${i}`)
  expect(targetOf('/first')).not.toBe(first)
  expect(targetOf('/first')).toEqual(first)
  const long = `/${'a'.repeat(300)}`
  expect(targetOf(long)).not.toBe(targetOf(long))
})

test.each([
  ['http://host:8080/predictions/m?a=1', ['predictions', 'm'], 'a=1'],
  ['HTTPS://user@host/ping', ['ping'], ''],
  ['http://host?a=1', [], 'a=1'],
  ['/predictions/m//?a=?b', ['predictions', 'm'], 'a=?b'],
  ['/predictions%2Fm', ['predictions', 'm'], ''],
])('%s leads to %j', (url, segments, query) => {
  expect(targetOf(url)).toMatchObject({ segments, query })
})
