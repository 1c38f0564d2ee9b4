import { expect, test } from '@jest/globals'
import { encodeOutput } from '../../backend-worker/output.ts'
import type { ServeError } from '../../common/errors.ts'

class Empty {}

test.each([
  [{}, '{}'],
  [Object.create(null), '{}'],
  [new Empty(), '{}'],
  [null, 'null'],
  [{ toJSON: () => null }, 'null'],
  [0, '0'],
  [[], '[]'],
  [new Date(0), '"1970-01-01T00:00:00.000Z"'],
  [undefined, ''],
])('%p is written as %s', (item, text) => {
  expect(Buffer.from(encodeOutput(item)).toString()).toBe(text)
})

test.each<[unknown, string]>([
  [new Map([[1, 2]]), 'a Map, which JSON cannot hold: it would become {}; use Object.fromEntries(map)'],
  [new Set([1]), 'a Set, which JSON cannot hold: it would become {}; use [...set]'],
  [
    new Response('x'),
    'a Response, which JSON cannot hold: it would become {}; use await response.json() or await response.text()',
  ],
  [new Error('x'), 'an Error, which JSON cannot hold: it would become {}; throw it'],
  [/x/, 'a RegExp, which JSON cannot hold: it would become {}; convert it first'],
  [Number.NaN, 'NaN, which JSON cannot hold: it would become null'],
  [-Infinity, '-Infinity, which JSON cannot hold: it would become null'],
])('%p is refused, because JSON would lose it without a word', (item, text) => {
  let detail: string | undefined
  try {
    encodeOutput(item)
  } catch (thrown) {
    ;({ detail } = thrown as ServeError)
  }
  expect(detail).toBe(`An item is ${text}`)
})
