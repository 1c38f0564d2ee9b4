import { expect, test } from '@jest/globals'
import { nameProblem } from '../../common/names.ts'

test.each(['\n', '\r', '\u001b', '\u007f', '\u0085', '\u009b', '\u2028', '\u2029', '\u202e', '\u2066'])(
  'what is told of a name with %j stays one line without control characters',
  (letter) => {
    const told = nameProblem('Model name', `a${letter}b`)
    expect(told).toMatch(/^Model name "a\\(n|r|u[0-9a-f]{4})b" must /)
  },
)
