import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from '@jest/globals'
import { changedFiles, readFolder, WATCH_LIMITS } from '../../frontend/cli/dev/file-stamps.ts'
import { DevServer } from '../support/dev-server.ts'
import { tempDir } from '../support/temp.ts'

const HANDLER = "import { WORD } from './dist/word.mjs'\nexport const handle = (all) => all.map(() => WORD)\n"

/** Writes empty files below a folder, which is made. */
function write(folder: string, ...names: string[]): void {
  mkdirSync(folder, { recursive: true })
  for (const name of names) writeFileSync(join(folder, name), '')
}

const numbered = (count: number): string[] => Array.from({ length: count }, (_, i) => `${i}.bin`)

async function read(folder: string, limits = WATCH_LIMITS) {
  const { stamps, unread } = await readFolder(folder, limits)
  const below = (path: string): string => relative(folder, path)
  return {
    files: [...stamps.keys()].map(below),
    unread: unread === undefined ? undefined : below(unread),
  }
}

test('installed packages, repositories and outputs of builds are not read', async () => {
  const folder = tempDir()
  write(folder, 'handler.ts')
  const skipped = ['node_modules', '.git', '__pycache__', 'dist', 'build', 'target', 'coverage', 'venv']
  for (const name of skipped) write(join(folder, name, 'deeper'), 'file.ts')
  write(join(folder, 'src'), 'word.ts')
  expect(await read(folder)).toEqual({
    files: ['handler.ts', 'src/word.ts'],
    unread: undefined,
  })
})

test('files that were written, made or removed are a change', () => {
  const before = new Map(Object.entries({ same: '1', written: '1', removed: '1' }))
  const after = new Map(Object.entries({ same: '1', written: '2', made: '1' }))
  expect(changedFiles(before, after)).toEqual(['written', 'made', 'removed'])
})

test('of a folder with more files than the limit code is read first, and of others nothing is lost', async () => {
  const folder = tempDir()
  write(join(folder, 'data'), ...numbered(13), 'handler.py', 'word.ts')
  write(join(folder, 'src'), 'late.ts')
  const { files, unread } = await read(folder, { filesInFolder: 4, files: 100, folders: 100 })
  expect([files.length, unread]).toEqual([5, 'data'])
  expect(files).toEqual(expect.arrayContaining(['data/handler.py', 'data/word.ts', 'src/late.ts']))
})

test('a folder is listed only as far as four times what is looked at', async () => {
  const folder = tempDir()
  write(join(folder, 'data'), ...numbered(100))
  write(join(folder, 'data', 'deeper'), 'file.ts')
  const { files, unread } = await read(folder, { filesInFolder: 5, files: 100, folders: 100 })
  expect([files.filter((path) => path.startsWith('data/') && path.endsWith('.bin')).length, unread]).toEqual([
    5,
    'data',
  ])
})

test('a look costs no more calls than the limits, whatever is there: files, folders, links', async () => {
  const folder = tempDir()
  for (let i = 0; i < 10; i++) {
    write(join(folder, `d${i}`, 'deeper'), ...numbered(5))
    symlinkSync(folder, join(folder, `d${i}`, 'loop'))
  }
  const { files, unread } = await read(folder, { filesInFolder: 3, files: 8, folders: 6 })
  expect(files.length).toBeLessThanOrEqual(8)
  expect(unread).toBe('')
  const some = await read(folder, { filesInFolder: 5, files: 7, folders: 100 })
  expect(some.files.length).toBeLessThanOrEqual(7)
})

test('beside a folder of many files a save is loaded, and also one of an output that the handler imports', async () => {
  const root = tempDir()
  const folder = join(root, 'words')
  write(join(folder, 'data'), ...numbered(WATCH_LIMITS.filesInFolder + 1))
  write(join(folder, 'dist'))
  const word = (text: string): void =>
    writeFileSync(join(folder, 'dist', 'word.mjs'), `export const WORD = '${text}'\n`)
  word('one')
  writeFileSync(join(folder, 'handler.mjs'), HANDLER)
  const server = new DevServer('words', root)
  try {
    await server.said('words: it serves')
    await server.said('each save is loaded')
    writeFileSync(join(folder, 'handler.mjs'), `${HANDLER}// saved\n`)
    await server.said('words: the new code serves')
    word('two')
    await server.said('words: the new code serves', 2)
    const told = server.lines.filter((line) => /too many files to watch| changed$/.test(line))
    expect(told).toEqual([
      expect.stringMatching(
        /^words: too many files to watch: changes in data, .* 5000 files in 1000 folders/,
      ),
      'words: handler.mjs changed',
      'words: dist/word.mjs changed',
    ])
  } finally {
    await server.stop()
  }
})
