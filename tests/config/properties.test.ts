import { expect, test } from '@jest/globals'
import fc from 'fast-check'
import { escapeKey, escapeValue } from 'properties-file/escape'
import { closest, editDistance } from '../../common/names.ts'
import { parseProperties } from '../../frontend/config/properties.ts'

test('lines go on behind a backslash, comments are left out, and each key knows its line', () => {
  const text = '# comment\nmodels={\\\n  "a": {}\\\n}\n! more\n\nmodel_store : /store \n'
  expect(parseProperties(text, 'f', {})).toEqual([
    { name: 'models', text: '{"a": {}}', origin: 'f:2' },
    { name: 'model_store', text: '/store', origin: 'f:7' },
  ])
})

test('$$NAME$$ becomes the variable, as often as it stands there', () => {
  const [entry] = parseProperties('a=$$X$$/b/$$Y$$/$1', 'f', { X: '$&', Y: '' })
  expect(entry?.text).toBe('$&/b//$1')
})

test('what is escaped comes back as it was', () => {
  const trimmed = fc.string({ unit: 'grapheme' }).map((text) => text.replaceAll('$', '').trim())
  fc.assert(
    fc.property(trimmed, trimmed, (name, text) => {
      const [entry] = parseProperties(`${escapeKey(name)}=${escapeValue(text)}`, 'f', {})
      expect(entry).toEqual({ name, text, origin: 'f:1' })
    }),
  )
})

test('the edit distance counts insertions, deletions, replacements and swaps', () => {
  expect(editDistance('', 'abc')).toBe(3)
  expect(editDistance('model_store', 'model_sotre')).toBe(1)
  expect(editDistance('modelstore', 'model_store')).toBe(1)
  expect(editDistance('kitten', 'sitting')).toBe(3)
})

test('two slips at most count as the same word, and none in a short word', () => {
  expect(closest('max_reqest_siz', ['max_request_size', 'max_response_size'])).toBe('max_request_size')
  expect(closest('max_rqst_siz', ['max_request_size'])).toBeUndefined()
  expect(closest('abc', ['abd'])).toBeUndefined()
})
