import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { archiveFrames } from '../../frontend/workers/reports.ts'
import { tempDir } from '../support/temp.ts'

const modelDir = tempDir()
const file = join(modelDir, 'handler.py')

/** The reader of stacks of a model from this URL; without an archive it is the user's own folder. */
function named(url: string, archive: PreparedModel['archive']): (text: string) => string {
  return archiveFrames({ url, prepared: { modelDir, archive } as PreparedModel })
}

const ARCHIVE = { sha256: 'x' } as NonNullable<PreparedModel['archive']>

test.each([
  ['words.mar', 'words.mar'],
  ['/stores/of mine/words.mar', 'words.mar'],
  ['https://models.example/words.tar.gz?token=x', 'words.tar.gz'],
])('frames of Python and of JavaScript in the archive %s name its file', (url, shown) => {
  const text = (place: string, address = place): string =>
    [
      'Traceback (most recent call last):',
      `  File "${place}", line 12, in initialize`,
      '    self.call1()',
      `    at Object.handle (${address}:8:37)`,
      `    at ${place}:9:1`,
    ].join('\n')
  expect(named(url, ARCHIVE)(text(file, `file://${file}`))).toBe(text(`${shown}/handler.py`))
})

test('what a handler prints stays as it is, and so do frames of other places', () => {
  const text = [
    `loading ${file}`,
    `  File "${modelDir}-other/handler.py", line 1`,
    `at last: ${modelDir}`,
  ].join('\n')
  expect(named('words.mar', ARCHIVE)(text)).toBe(text)
})

test('the frames of a folder that is served as it is stay as they are', () => {
  const text = `  File "${file}", line 12, in initialize`
  expect(named('words', undefined)(text)).toBe(text)
})
