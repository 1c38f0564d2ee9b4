import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { compileHandler } from '../../model-archiver/bundle.ts'
import { missingPackages } from '../../model-archiver/packages.ts'
import { Reach } from '../../model-archiver/reach.ts'
import { tempDir } from '../support/temp.ts'

/** A model with a handler of these lines; a secret is beside its folder, and behind a link in it. */
function model(...lines: string[]): { folder: string; handler: string; out: string } {
  const root = tempDir()
  const folder = join(root, 'model')
  mkdirSync(join(folder, 'lib'), { recursive: true })
  writeFileSync(join(root, 'secret.txt'), 'hunter2')
  writeFileSync(join(root, 'secret.json'), '"hunter2"')
  writeFileSync(join(root, 'shared.ts'), "export default 'shared'")
  writeFileSync(join(folder, 'words.txt'), 'mine')
  writeFileSync(join(folder, 'lib', 'own.ts'), "export { default } from '../words.txt' with { type: 'text' }")
  symlinkSync(join(root, 'secret.txt'), join(folder, 'link.txt'))
  symlinkSync(root, join(folder, 'up'))
  const handler = join(folder, 'handler.ts')
  writeFileSync(handler, [...lines, 'export const handle = () => [s]'].join('\n'))
  return { folder, handler, out: join(folder, 'out.mjs') }
}

test('a handler imports files of its model', async () => {
  const { folder, handler, out } = model("import s from './lib/own'")
  const sources = await compileHandler(handler, out, Reach.ofArchive(folder))
  expect(sources.sort()).toEqual([handler, join(folder, 'lib', 'own.ts'), join(folder, 'words.txt')].sort())
})

test.each([
  ['/etc/passwd', 'text'],
  ['../secret.txt', 'text'],
  ['./link.txt', 'text'],
  ['./up/secret.txt', 'text'],
  ['../secret.json', 'json'],
  ['../shared.ts', 'text'],
])('a handler cannot have the server read %s', async (path, type) => {
  const { folder, handler, out } = model(`import s from '${path}' with { type: '${type}' }`)
  for (const reach of [Reach.ofArchive(folder), Reach.ofFolder(folder)]) {
    const failed = compileHandler(handler, out, reach)
    await expect(failed).rejects.toThrow(expect.objectContaining({ code: 'INVALID_MODEL' }))
    await expect(failed).rejects.toThrow('is not in the model')
  }
})

test('a handler in a folder of the user shares modules with others, one in an archive does not', async () => {
  const { folder, handler, out } = model("import s from '../shared'")
  const shared = join(folder, '..', 'shared.ts')
  expect(await compileHandler(handler, out, Reach.ofFolder(folder))).toContain(shared)
  await expect(compileHandler(handler, out, Reach.ofArchive(folder))).rejects.toThrow(
    `${shared} is not in the model`,
  )
})

test('a handler that is a link to a file elsewhere is not read', async () => {
  const { folder, out } = model()
  symlinkSync(join(folder, '..', 'secret.json'), join(folder, 'handler.js'))
  const failed = compileHandler(join(folder, 'handler.js'), out, Reach.ofFolder(folder))
  await expect(failed).rejects.toThrow('is not in the model')
})

test('for the packages that a handler lacks, no file outside of its folder is read', async () => {
  const { folder } = model()
  writeFileSync(join(folder, '..', 'other.mjs'), "import 'not-installed-above'")
  const script = join(folder, 'handler.mjs')
  writeFileSync(script, "import 'not-installed'\nimport '../other.mjs'\nimport '../secret.json'")
  expect(await missingPackages(script)).toEqual(['not-installed'])
})
