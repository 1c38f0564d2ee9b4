import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { StoreIndex } from '../../model-archiver/repository.ts'
import { listStore } from '../../model-archiver/store.ts'
import { tempDir } from '../support/temp.ts'

const HANDLER = 'export const handle = () => []\n'
const MANIFEST = JSON.stringify({
  runtime: 'node',
  model: { modelName: 'novel', modelVersion: '2.0', handler: 'own.ts' },
})

/** A store called `models` with these files. */
function store(files: Record<string, string>): string {
  const folder = join(tempDir(), 'models')
  mkdirSync(folder)
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  return folder
}

describe('a store with the files of a model', () => {
  test.each([
    ['a handler', { 'handler.ts': HANDLER }, 'models'],
    ['a handler and weights in a folder', { 'handler.ts': HANDLER, 'weights/a.bin': '' }, 'models'],
    ['a manifest', { 'MAR-INF/MANIFEST.json': MANIFEST, 'own.ts': HANDLER }, 'novel'],
    ['a GGUF file', { 'story.gguf': 'GGUF' }, 'models'],
  ])('is that model: %s', async (_, files: Record<string, string>, name) => {
    const folder = store(files)
    expect(await listStore(folder)).toMatchObject({
      models: [{ location: folder, path: folder }],
      skipped: [],
    })
    expect(await new StoreIndex(folder).models()).toMatchObject([{ name, location: folder }])
  })

  test('is none where it has models', async () => {
    const { models } = await listStore(store({ 'handler.ts': HANDLER, 'story/handler.ts': HANDLER }))
    expect(models.map(({ location }) => location)).toEqual(['story'])
  })
})

test('a store with other files, or none, has no model', async () => {
  expect((await listStore(store({ 'README.md': '', 'docs/a.md': '' }))).models).toEqual([])
  expect((await listStore(join(tempDir(), 'missing'))).models).toEqual([])
})
