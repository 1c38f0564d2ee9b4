import { posix, win32 } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { entryNameProblem, EntryGuard } from '../../model-archiver/entries.ts'
import { UnpackBudget, DEFAULT_UNPACK_LIMITS } from '../../model-archiver/unpack-budget.ts'

describe('names of archive entries', () => {
  test.each([
    'handler.mjs',
    'MAR-INF/MANIFEST.json',
    'weights/part 1/model-00001.gguf',
    'a..b/..c',
    '.hidden',
    'folder/',
    'naïve/日本.txt',
    'console.js',
    'com10',
    'null',
  ])('takes %j', (name) => {
    expect(entryNameProblem(name)).toBeUndefined()
  })

  test.each([
    ['', 'empty'],
    ['../x', '..'],
    ['a/../../x', '..'],
    ['a/..', '..'],
    ['/etc/passwd', 'absolute'],
    ['//x', 'absolute'],
    ['a//b', 'empty'],
    ['./a', 'dot'],
    ['a/.', 'dot'],
    ['a\\b', 'backslash'],
    ['..\\x', 'backslash'],
    ['C:/x', 'drive'],
    ['c:x', 'drive'],
    ['file:stream', 'colon'],
    ['a\0b', 'control'],
    ['a\nb', 'control'],
    ['a\u007fb', 'control'],
    ['a\u0085b', 'control'],
    ['a\u2028b', 'control'],
    ['a\u2029b', 'control'],
    ['a\u202etxt.js', 'direction'],
    ['a\u2067b', 'direction'],
    ['\u061ca', 'direction'],
    ['CON', 'device'],
    ['nul.txt', 'device'],
    ['a/Aux/b', 'device'],
    ['com1.tar.gz', 'device'],
    ['LPT9', 'device'],
    ['name.', 'dot or a space'],
    ['name /x', 'dot or a space'],
    ['x'.repeat(256), 'longer'],
    ['é'.repeat(128), 'longer'],
    ['ab/'.repeat(400), 'longer'],
    ['a/'.repeat(100), 'deeper'],
  ])('refuses %j', (name, word) => {
    expect(entryNameProblem(name)).toContain(word)
  })

  test('a name that is taken stays inside, on both kinds of platform', () => {
    const part = fc.oneof(
      fc.constantFrom('..', '.', '', 'a', 'C:', '\\', 'nul', 'x ', '...', '\u0000'),
      fc.string({ maxLength: 5, unit: 'binary' }),
    )
    const name = fc.array(part, { maxLength: 6 }).map((parts) => parts.join('/'))
    fc.assert(
      fc.property(name, (text) => {
        if (entryNameProblem(text) !== undefined) return
        expect(posix.resolve('/root/model', text)).toMatch(/^\/root\/model\/./)
        expect(win32.resolve('D:\\root\\model', text)).toMatch(/^D:\\root\\model\\./)
      }),
      { numRuns: 2000 },
    )
  })

  test('an ordinary name is taken', () => {
    const word = fc.stringMatching(/^[a-z0-9_-]{1,8}\.[a-z]{1,2}x$/)
    const name = fc.array(word, { minLength: 1, maxLength: 5 }).map((parts) => parts.join('/'))
    fc.assert(
      fc.property(name, (text) => {
        fc.pre(!/(^|\/)(con|prn|aux|nul|com\d|lpt\d)\./.test(text))
        expect(entryNameProblem(text)).toBeUndefined()
      }),
    )
  })
})

describe('a set of entries', () => {
  const limits = { ...DEFAULT_UNPACK_LIMITS, maxFiles: 4, maxBytes: 100 }
  const guard = (): EntryGuard => new EntryGuard(new UnpackBudget(limits, 1000, () => Promise.resolve(1e12)))

  test('has no file twice, also not in other letters', () => {
    const entries = guard()
    entries.admit('a/Model.bin', 'file', 1)
    expect(() => entries.admit('a/Model.bin', 'file', 1)).toThrow(
      'Archive entry "a/Model.bin" is refused: the archive has that name twice.',
    )
    expect(() => entries.admit('a/model.BIN', 'file', 1)).toThrow('letter case')
    expect(() => guard().admit('ok', 'file', 1)).not.toThrow()
  })

  test('has no file where another entry needs a folder', () => {
    const entries = guard()
    entries.admit('a', 'file', 1)
    expect(() => entries.admit('a/b', 'file', 1)).toThrow('twice')
    const others = guard()
    others.admit('a/b', 'file', 1)
    expect(() => others.admit('a', 'file', 1)).toThrow('twice')
    expect(() => others.admit('A/c', 'file', 1)).toThrow('letter case')
  })

  test('may name a folder again', () => {
    const entries = guard()
    entries.admit('a/', 'folder', 0)
    entries.admit('a/b', 'file', 1)
    expect(() => entries.admit('a/', 'folder', 0)).not.toThrow()
  })

  test('stays below its limits', () => {
    const entries = guard()
    entries.admit('a', 'file', 60)
    expect(() => entries.admit('b', 'file', 41)).toThrow('more than 100 bytes')
    expect(() => guard().admit('x', 'file', NaN)).toThrow('more than 100 bytes')
    const many = guard()
    for (const name of ['a', 'b', 'c', 'd']) many.admit(name, 'file', 0)
    expect(() => many.admit('e', 'file', 0)).toThrow(
      'more than 4 files and folders. If you trust it, raise max_archive_files',
    )
    const deep = guard()
    expect(() => deep.admit('a/b/c/d/e', 'file', 0)).toThrow('more than 4 files and folders')
  })
})
