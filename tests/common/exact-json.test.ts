import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { exactJson, parseBody, parseJsonBytes, tryParseJson } from '../../common/exact-json.ts'

describe('bytes of JSON', () => {
  test.each([
    ['a byte of Latin-1', '{"a":"\xe9"}', 6],
    ['a character that is cut', '"\xe2\x82"', 1],
    ['a byte after characters of several bytes', Buffer.from('"é€😀').toString('latin1') + '\xff"', 10],
    ['a byte after the client’s own U+FFFD', '["\xef\xbf\xbd","\xef\xbf"]', 7 + 1],
    ['half of a pair in UTF-8', '"\xed\xa0\x80"', 1],
  ])('that are not UTF-8 are refused with the place: %s', (_what, latin1, byte) => {
    const bytes = Buffer.from(latin1, 'latin1')
    expect(() => parseJsonBytes(bytes)).toThrow(new SyntaxError(`Invalid UTF-8 at byte ${byte}`))
    expect(() => parseBody(bytes)).toThrow(`The body is not valid JSON: Invalid UTF-8 at byte ${byte}`)
    expect(tryParseJson(bytes)).toBeUndefined()
  })
})

describe('JSON', () => {
  /** As JSON.stringify, with some bigints. */
  const values = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.oneof(
        fc.string({ unit: 'binary' }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((n) => (Object.is(n, -0) ? 0 : n)),
        fc.maxSafeInteger(),
        fc.bigInt({ min: 2n ** 53n, max: 2n ** 80n }).map((n) => (n % 2n === 0n ? n : -n)),
        fc.constantFrom(null, true, '"7615917337495251231"', '\\\\"', 'e400', 0),
      ),
      fc.array(tie('value'), { maxLength: 5 }),
      fc.dictionary(fc.string(), tie('value'), { maxKeys: 5, noNullPrototype: true }),
    ),
  })).value

  test('keeps every number, written and read', () => {
    fc.assert(
      fc.property(values, fc.constantFrom(undefined, 2), (value, indent) => {
        // A double such as 2e17 is written as an integer.
        const written = exactJson(value, indent)
        expect(exactJson(parseJsonBytes(Buffer.from(written)), indent)).toBe(written)
      }),
    )
  })

  test('has bigints only for what JavaScript cannot hold', () => {
    const text =
      ' {"a":[9007199254740991,9007199254740992,-9223372036854775808],"9007199254740993":"\\"9007199254740993",' +
      '"b":1234567890123456.5,"c":[1.5e400 , -1E+310],"d":1e308,"e":12345678901234567e1,"__proto__":18446744073709551615}'
    const read = parseJsonBytes(Buffer.from(text)) as Record<string, unknown>
    expect(Object.entries(read)).toEqual([
      ['a', [9007199254740991, 9007199254740992n, -9223372036854775808n]],
      ['9007199254740993', '"9007199254740993'],
      ['b', 1234567890123456.5],
      ['c', [15n * 10n ** 399n, -(10n ** 310n)]],
      ['d', 1e308],
      ['e', 123456789012345670],
      ['__proto__', 18446744073709551615n],
    ])
    expect(parseJsonBytes(Buffer.from('7615917337495251231'))).toBe(7615917337495251231n)
  })

  test.each([
    '{7615917337495251231:1}',
    '[07615917337495251231]',
    '[7615917337495251231 1]',
    '[1 7615917337495251231]',
    '["a" 1e400]',
    '[01e400]',
    '[-]',
    '[7615917337495251231.]',
    '{"a":7615917337495251231,}',
    '"7615917337495251231',
  ])('is refused with the words of JSON.parse: %s', (text) => {
    let said: unknown
    try {
      JSON.parse(text)
    } catch (error) {
      said = error
    }
    expect(said).toBeInstanceOf(SyntaxError)
    expect(() => parseJsonBytes(Buffer.from(text))).toThrow((said as Error).message)
  })

  test.each(['1'.repeat(4_301), '1e4301', '-1e999999999999', `${'1'.repeat(400)}.5`])(
    'may have no number of more digits than Python reads: %s',
    (number) => {
      expect(() => parseJsonBytes(Buffer.from(`[${number}]`))).toThrow(/must have at most 4300 digits$/)
    },
  )

  test('that a value contains itself is an error with a bigint too', () => {
    const circle: unknown[] = [2n]
    circle.push(circle)
    expect(() => exactJson(circle)).toThrow(TypeError)
  })
})
