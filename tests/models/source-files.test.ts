import {
  cpSync,
  linkSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { SourceFiles } from '../../frontend/models/source-files.ts'
import { tempDir } from '../support/temp.ts'

async function folder(maxFiles = 100) {
  const path = join(tempDir(), 'model')
  mkdirSync(join(path, 'weights'), { recursive: true })
  writeFileSync(join(path, 'handler.ts'), 'a')
  utimesSync(join(path, 'handler.ts'), 1_000_000_000, 1_000_000_000)
  writeFileSync(join(path, 'weights', 'w.bin'), 'w')
  // As Kubernetes mounts a ConfigMap.
  mkdirSync(join(path, '..1'))
  writeFileSync(join(path, '..1', 'key'), '1')
  symlinkSync('..1', join(path, '..data'))
  symlinkSync(join('..data', 'key'), join(path, 'key'))
  const files = new SourceFiles(maxFiles)
  await files.add(path)
  return { path, files }
}

test.each<[string, (path: string) => void]>([
  ['a file with other content', (path) => writeFileSync(join(path, 'weights', 'w.bin'), 'x')],
  ['a file with other content of the same size and time', rewriteInPlace],
  ['a further file', (path) => writeFileSync(join(path, 'weights', 'v.bin'), '')],
  ['a file that is gone', (path) => rmSync(join(path, 'handler.ts'))],
  ['a file under another name', (path) => renameSync(join(path, 'handler.ts'), join(path, 'model.ts'))],
  ['a copy in its place', (path) => replaceByCopy(join(path, 'handler.ts'))],
  ['a link that leads elsewhere', turnLink],
  ['a folder that is gone', (path) => rmSync(path, { recursive: true })],
])('is changed: %s', async (_what, change) => {
  const { path, files } = await folder()
  expect(await files.areUnchanged()).toBe(true)
  change(path)
  expect(await files.areUnchanged()).toBe(false)
})

test('is not changed by being read, nor by what Python writes when it reads', async () => {
  const { path, files } = await folder()
  readFileSync(join(path, 'handler.ts'))
  mkdirSync(join(path, '__pycache__'))
  expect(await files.areUnchanged()).toBe(true)
})

test('with more files than the limit, or in a circle of links, counts as changed', async () => {
  expect(await (await folder(3)).files.areUnchanged()).toBe(false)
  const { path } = await folder()
  symlinkSync('.', join(path, 'self'))
  const files = new SourceFiles(100_000)
  await files.add(path)
  expect(await files.areUnchanged()).toBe(false)
})

test('every path that was added counts', async () => {
  const [one, other] = [await folder(), await folder()]
  await one.files.add(other.path)
  linkSync(join(other.path, 'handler.ts'), join(other.path, 'hard.ts'))
  expect(await one.files.areUnchanged()).toBe(false)
})

function rewriteInPlace(path: string): void {
  writeFileSync(join(path, 'handler.ts'), 'b')
  utimesSync(join(path, 'handler.ts'), 1_000_000_000, 1_000_000_000)
}

function replaceByCopy(path: string): void {
  cpSync(path, `${path}.new`, { preserveTimestamps: true })
  renameSync(`${path}.new`, path)
}

function turnLink(path: string): void {
  mkdirSync(join(path, '..2'))
  writeFileSync(join(path, '..2', 'key'), '2')
  rmSync(join(path, '..data'))
  symlinkSync('..2', join(path, '..data'))
}
