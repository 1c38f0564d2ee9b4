import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { runInit } from '../../frontend/cli/init/command.ts'
import { runEsbuild } from '../../model-archiver/esbuild.ts'
import { tempDir } from '../support/temp.ts'
import { execa, spawnSync } from '../support/tools.ts'

async function init(folder: string): Promise<{ status: number; out: string[]; err: string[] }> {
  const out: string[] = []
  const err: string[] = []
  const output = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) }
  return { status: await runInit([folder, '--template', 'python'], output), out, err }
}

test('init writes nothing where a link waits in the place of a file, also one that leads nowhere', async () => {
  const folder = tempDir()
  mkdirSync(join(folder, 'project'))
  symlinkSync(join(folder, 'victim'), join(folder, 'project', 'handler.py'))
  const { status, err } = await init(join(folder, 'project'))
  expect([status, err]).toEqual([1, [expect.stringContaining('must not have handler.py')]])
  expect(readdirSync(join(folder, 'project'))).toEqual(['handler.py'])
  expect(existsSync(join(folder, 'victim'))).toBe(false)
})

test('the line that init shows for the shell runs nothing else, whatever the name of the folder', async () => {
  const folder = tempDir()
  const name = join(folder, `a'; touch PWNED; "$(touch PWNED)" b`)
  const { status, out } = await init(name)
  expect(status).toBe(0)
  const line = /^Next: (.*?) && (?:pip|npm) install .*npm run dev$/m.exec(out.join('\n'))![1]!
  const { stdout } = await execa('sh', ['-c', `${line} && pwd`], { cwd: folder })
  expect(stdout).toBe(name)
  expect(readdirSync(folder)).toHaveLength(1)
})

test('a handler beside a pipe that nobody writes to is refused after a time, and others are built', async () => {
  const folder = tempDir()
  for (const name of ['stuck', 'fine']) {
    mkdirSync(join(folder, name))
    writeFileSync(join(folder, name, 'handler.mjs'), 'export const handle = 1\n')
  }
  expect(spawnSync('mkfifo', [join(folder, 'stuck', 'package.json')]).status).toBe(0)
  const build = (name: string, ms?: number) =>
    runEsbuild(join(folder, name, 'handler.mjs'), join(folder, name, 'out.js'), {}, ms)
  await expect(build('stuck', 500)).rejects.toThrow(
    'Handler handler.mjs cannot be bundled: it took longer than 0.5 s; one of its files may be a pipe or a device',
  )
  expect((await build('fine')).errors).toEqual([])
})
