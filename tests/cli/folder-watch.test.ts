import { mkdirSync, opendirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { FolderWatch } from '../../frontend/cli/dev/folder-watch.ts'
import { tempDir } from '../support/temp.ts'

const watches: FolderWatch[] = []

afterEach(() => {
  for (const watch of watches.splice(0)) watch.close()
})

/** @returns a watch, and what resolves when it has told of something that has not been waited for */
function watchFolders(): { watch: FolderWatch; changed: () => Promise<void> } {
  let told = 0
  let tell = (): void => undefined
  const watch = new FolderWatch(() => {
    told += 1
    tell()
  })
  watches.push(watch)
  const changed = async (): Promise<void> => {
    while (told === 0) await new Promise<void>((resolve) => (tell = resolve))
    told -= 1
  }
  return { watch, changed }
}

// A worker whose folder it was keeps it: then its inode is not given to the next one.
test.each([true, false])(
  'a folder that another one replaces at once is watched again (somebody has the old one: %s)',
  async (isHeld) => {
    const root = tempDir()
    const folder = join(root, 'words')
    mkdirSync(folder)
    const folders = new Set([root, folder])
    const { watch, changed } = watchFolders()
    expect(watch.update(folders)).toBe(true)
    const held = isHeld ? opendirSync(folder) : undefined
    rmSync(folder, { recursive: true })
    mkdirSync(folder)
    await changed()
    expect([watch.update(folders), watch.update(folders)]).toEqual([true, false])
    writeFileSync(join(folder, 'handler.ts'), '')
    await changed()
    held?.closeSync()
  },
)

test('a change in a folder leaves its watch as it is', async () => {
  const folder = tempDir()
  const { watch, changed } = watchFolders()
  watch.update(new Set([folder]))
  writeFileSync(join(folder, 'handler.ts'), '')
  await changed()
  expect(watch.update(new Set([folder]))).toBe(false)
})
