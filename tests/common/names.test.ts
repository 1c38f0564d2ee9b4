import { expect, test } from '@jest/globals'
import { isName, nameProblem, splitList } from '../../common/names.ts'

test.each(['\n', '\r', '\u001b', '\u007f', '\u0085', '\u009b', '\u2028', '\u2029', '\u202e', '\u2066'])(
  'what is told of a name with %j stays one line without control characters',
  (letter) => {
    const told = nameProblem('Model name', `a${letter}b`)
    expect(told).toMatch(/^Model name "a\\(n|r|u[0-9a-f]{4})b" must /)
  },
)

test.each(['m', '_1', 'my-model_2.0+a@b', 'a'.repeat(128)])('%j may be a name', (text) => {
  expect(isName(text)).toBe(true)
})

test.each(['', '.m', '-m', 'a..b', 'a/b', '__proto__', 'a'.repeat(129)])('%j may be no name', (text) => {
  expect(isName(text)).toBe(false)
})

test('a list has no blanks around its items, and no empty items', () => {
  expect(splitList(' a, b c ,,d, ')).toEqual(['a', 'b c', 'd'])
})
