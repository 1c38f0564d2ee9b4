import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect, test } from '@jest/globals'
import { tempDir } from '../support/temp.ts'
import { execa, execFile, execFileSync, spawn, spawnSync } from '../support/tools.ts'

const TSX = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
const TELL = ['-p', 'process.env.TMPDIR']

test('each program of a test has a TMPDIR of its own, in the folder of the run', async () => {
  const child = spawn(process.execPath, TELL, { stdio: ['ignore', 'pipe', 'inherit'] })
  const [spawned] = (await once(child.stdout, 'data')) as [Buffer]
  const told = [
    String(spawned),
    spawnSync(process.execPath, TELL, { encoding: 'utf8' }).stdout,
    execFileSync(process.execPath, TELL, { encoding: 'utf8', env: process.env }),
    await new Promise<string>((resolve) =>
      execFile(process.execPath, TELL, {}, (_error, stdout) => resolve(stdout)),
    ),
    (await execa(process.execPath, TELL)).stdout,
    (await execa(process.execPath, TELL, { env: process.env })).stdout,
  ].map((line) => line.trim())
  expect(new Set(told).size).toBe(told.length)
  for (const folder of told) {
    expect(folder.startsWith(join(tmpdir(), 'tsts-tool-'))).toBe(true)
    expect(existsSync(folder)).toBe(true)
  }
})

test('a TMPDIR that the test has chosen counts', () => {
  const env = { ...process.env, TMPDIR: '/chosen' }
  expect(execFileSync(process.execPath, TELL, { encoding: 'utf8', env }).trim()).toBe('/chosen')
})

test('a program that removes $TMPDIR/m, as torch-model-archiver does for a model m, harms nobody', () => {
  const neighbour = join(tmpdir(), 'm', 'planted')
  const script = "require('node:fs').rmSync(process.env.TMPDIR + '/m', { recursive: true, force: true })"
  expect(spawnSync(process.execPath, ['-e', script]).status).toBe(0)
  expect(existsSync(neighbour)).toBe(true)
})

test('the run tells at its end when a test removed what it had not made', () => {
  const code = `
    import { rmSync } from 'node:fs'
    import { makeOwnTemp, removeOwnTemp } from ${JSON.stringify(join(import.meta.dirname, '../support/own-temp.ts'))}
    makeOwnTemp()
    if (process.argv.includes('harm')) rmSync(process.env.TMPDIR + '/m', { recursive: true })
    removeOwnTemp()`
  const script = join(tempDir(), 'run.ts')
  writeFileSync(script, code)
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['--import', TSX, script, ...args], { encoding: 'utf8' })
  expect(run().status).toBe(0)
  expect(run('harm')).toMatchObject({
    status: 1,
    stderr: expect.stringContaining('A test removed $TMPDIR/m') as unknown,
  })
})
