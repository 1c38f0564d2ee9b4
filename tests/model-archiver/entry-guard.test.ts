import { expect, test } from '@jest/globals'
import { EntryGuard } from '../../model-archiver/entries.ts'
import { UnpackBudget, DEFAULT_UNPACK_LIMITS } from '../../model-archiver/unpack-budget.ts'

type Entry = readonly [name: string, kind?: 'file' | 'folder', bytes?: number]

/** Which entry of an archive is refused, and why; undefined: all are let in. */
function refusal(entries: readonly Entry[], limits = { maxFiles: 100, maxBytes: 1000 }): string | undefined {
  const all = { ...DEFAULT_UNPACK_LIMITS, ...limits }
  const guard = new EntryGuard(new UnpackBudget(all, 1000, () => Promise.resolve(1e12)))
  for (const [name, kind = 'file', bytes = 0] of entries) {
    try {
      guard.admit(name, kind, bytes)
    } catch (error) {
      return (error as Error).message
    }
  }
  return undefined
}

test.each<[string, Entry[], string]>([
  ['the same file', [['a'], ['a']], 'Archive entry "a" is refused: the archive has that name twice.'],
  ['letter case', [['a/x'], ['A/x']], 'it differs only by letter case from "a"'],
  ['Unicode form', [['caf\u00e9'], ['cafe\u0301']], 'it differs only by letter case from "café"'],
  ['a file where a folder is', [['a/x'], ['a']], 'the archive has that name twice'],
  ['a folder where a file is', [['a'], ['a', 'folder']], 'the archive has that name twice'],
  ['a file below a file', [['a'], ['a/x']], 'the archive has that name twice'],
  ['an unsafe name', [['../a']], 'leads out of the archive'],
])('no name counts twice, however it is written: %s', (_what, entries, message) => {
  expect(refusal(entries)).toContain(message)
})

test('a folder may be named before, after and by its files', () => {
  expect(
    refusal([['a/', 'folder'], ['a/x'], ['a/', 'folder'], ['a/y'], ['b/x'], ['b', 'folder']]),
  ).toBeUndefined()
})

test('files are counted and their bytes added up: the limits are reached, not exceeded', () => {
  const limits = { maxFiles: 3, maxBytes: 10 }
  const three: Entry[] = [['a', 'file', 4], ['b', 'file', 3], ['c', 'file', 3]] // prettier-ignore
  expect(refusal(three, limits)).toBeUndefined()
  expect(refusal([...three, ['d', 'folder']], limits)).toContain('more than 3 files and folders')
  expect(
    refusal(
      [
        ['a', 'file', 4],
        ['b', 'file', 7],
      ],
      limits,
    ),
  ).toContain('unpacks to more than 10 bytes')
  expect(refusal([['a', 'file', NaN]], limits)).toContain('unpacks to more than 10 bytes')
})
