import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { createWorkspace } from '../../model-archiver/workspace.ts'
import { tempDir } from '../support/temp.ts'

test('a workspace is its owner’s alone, finds the packages in order, and goes without what it links to', async () => {
  const temp = tempDir()
  const own = tempDir()
  mkdirSync(join(own, 'package'))
  const modules = ['near', 'far'].map((name) => join(own, name))
  for (const folder of modules) mkdirSync(folder)
  const workspace = await createWorkspace(temp, join(own, 'package'), modules)
  expect(lstatSync(workspace.root).mode & 0o777).toBe(0o700)
  // As Node searches from a module in the place: its own folder first, then each one above.
  const searched: string[] = []
  for (let at = workspace.place; at !== workspace.root; at = join(at, '..'))
    searched.push(join(at, 'node_modules'))
  const [nearest, ...above] = searched
  expect(realpathSync(join(nearest!, 'torchserve-ts'))).toBe(realpathSync(join(own, 'package')))
  expect(above.map((folder) => realpathSync(folder))).toEqual(modules.map((folder) => realpathSync(folder)))
  await workspace.dispose()
  expect([existsSync(workspace.root), readdirSync(own).sort()]).toEqual([false, ['far', 'near', 'package']])
})

test('a file or a link where the unpacked models go is refused', async () => {
  const elsewhere = tempDir()
  const temp = tempDir()
  symlinkSync(elsewhere, join(temp, 'models'))
  const refused = { code: 'CONFIG', message: expect.stringContaining('set TEMP to a folder of your own') }
  await expect(createWorkspace(temp, elsewhere)).rejects.toMatchObject(refused)
  expect(readdirSync(elsewhere)).toEqual([])
})

test('one that cannot be laid out leaves nothing', async () => {
  const temp = tempDir()
  const own = tempDir()
  writeFileSync(join(own, 'file'), '')
  const tooLong = join(own, 'x'.repeat(5000))
  await expect(createWorkspace(temp, own, [tooLong])).rejects.toThrow('ENAMETOOLONG')
  expect(readdirSync(join(temp, 'models'))).toEqual([])
})
