import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { escapeControls, escapeLines } from '../../common/texts.ts'

const isControl = (code: number): boolean =>
  (code < 0x20 && code !== 0x09) || (code >= 0x7f && code <= 0x9f) || code === 0x2028 || code === 0x2029

/** Character by character, as the function says it. */
const slowly = (text: string): string =>
  Array.from(text)
    .map((letter) => {
      const code = letter.charCodeAt(0)
      if (!isControl(code)) return letter
      return letter === '\n' ? '\\n' : `\\x${code.toString(16).padStart(2, '0')}`
    })
    .join('')

test('each control character is escaped, and nothing else, in short texts and long ones', () => {
  const all = Array.from({ length: 0x1_0000 }, (_, code) => String.fromCharCode(code))
  const wrong = all.filter((letter) => escapeControls(letter) !== slowly(letter))
  expect(wrong).toEqual([])
  const long = all.join('')
  // A surrogate pair in the middle is one letter, and no control.
  expect(escapeControls(long)).toBe(slowly(long))
})

test('texts of any length and letters', () => {
  const letters = fc.constantFrom(
    'a',
    '\n',
    '\t',
    '\x00',
    '\x1b',
    '\x7f',
    '\x85',
    'é',
    '\u2028',
    '€',
    '\u{1f642}',
  )
  fc.assert(
    fc.property(fc.array(letters, { maxLength: 3_000, size: 'max' }), (pieces) => {
      const text = pieces.join('')
      expect(escapeControls(text)).toBe(slowly(text))
    }),
  )
})

test('a text of several lines keeps its line feeds', () => {
  expect(escapeLines('a\x1b\nb\r\n')).toBe('a\\x1b\nb\\x0d\n')
})
