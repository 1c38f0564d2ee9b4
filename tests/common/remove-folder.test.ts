import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { removeFolder } from '../../common/files.ts'
import { Gate } from '../support/gate.ts'
import { tempDir } from '../support/temp.ts'
import { execFileSync } from '../support/tools.ts'

const path = process.env['PATH']!

afterEach(() => {
  process.env['PATH'] = path
})

/** A program `rm` that comes first on the PATH. */
function rmIs(script: string): void {
  const folder = tempDir()
  writeFileSync(join(folder, 'rm'), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  process.env['PATH'] = `${folder}:${path}`
}

/** A folder with a file, a link to a file elsewhere, and folders in each other with long names. */
function tree(): { folder: string; elsewhere: string } {
  const parent = tempDir()
  const elsewhere = join(parent, 'elsewhere')
  writeFileSync(elsewhere, '')
  const folder = join(parent, 'x')
  mkdirSync(join(folder, 'empty'), { recursive: true })
  writeFileSync(join(folder, 'file'), '')
  symlinkSync(parent, join(folder, 'link'))
  // By relative names, in a process of its own: the whole path is longer than the system takes.
  const script = `for (let n = 0; n < 30; n += 1) {
    const name = 'd'.repeat(250)
    fs.mkdirSync(name)
    process.chdir(name)
    fs.writeFileSync('file', '')
  }`
  execFileSync(process.execPath, ['-e', script], { cwd: folder })
  return { folder, elsewhere }
}

const PROGRAMS = [
  ['with rm', undefined],
  ['where rm is missing', 'none'],
  ['where rm fails', 'exit 1'],
] as const

test.each(PROGRAMS)('a folder is removed with what is in it, however deep, %s', async (_title, script) => {
  const { folder, elsewhere } = tree()
  if (script === 'none') process.env['PATH'] = tempDir()
  else if (script !== undefined) rmIs(script)
  await removeFolder(folder)
  expect([existsSync(folder), existsSync(elsewhere)]).toEqual([false, true])
  await expect(removeFolder(folder)).resolves.toBeUndefined()
})

test('folders are removed one after the other', async () => {
  const parent = tempDir()
  const [log, gate] = [join(parent, 'log'), new Gate()]
  const folders = ['a', 'b', 'c'].map((name) => join(parent, name))
  for (const folder of folders) mkdirSync(folder)
  rmIs(`for last; do :; done; echo "begin $last" >> ${log}
while [ ! -e ${gate.path} ]; do sleep 0.01; done
rmdir "$last"; echo "end $last" >> ${log}`)
  const removed = Promise.all(folders.map((folder) => removeFolder(folder)))
  while (!existsSync(log)) await new Promise((resolve) => setTimeout(resolve, 5))
  gate.open()
  await removed
  const lines = ['a', 'b', 'c'].flatMap((name) => [`begin ${name}`, `end ${name}`])
  expect(readFileSync(log, 'utf8').trim().split('\n')).toEqual(lines)
})
