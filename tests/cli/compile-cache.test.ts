import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { keepCompiledCode } from '../../frontend/cli/compile-cache.ts'
import { CLI } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** What Node.js was given as the folder of the cache, with this cache of the user. */
function chosen(env: Record<string, string>): string[] {
  const folders: string[] = []
  keepCompiledCode(env, { enableCompileCache: (folder) => folders.push(folder) })
  return folders
}

test('compiled code lies in a folder that only its user can enter', () => {
  const home = tempDir()
  const folder = join(home, 'torchserve-ts', 'compiled')
  expect(chosen({ XDG_CACHE_HOME: home })).toEqual([folder])
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(chosen({ XDG_CACHE_HOME: home })).toEqual([folder])
})

test('a folder that others may enter, or a link in its place, is not used', () => {
  const open = tempDir()
  mkdirSync(join(open, 'torchserve-ts', 'compiled'), { recursive: true })
  chmodSync(join(open, 'torchserve-ts', 'compiled'), 0o755)
  expect(chosen({ XDG_CACHE_HOME: open })).toEqual([])

  const writable = tempDir()
  mkdirSync(join(writable, 'torchserve-ts', 'compiled'), { recursive: true, mode: 0o700 })
  chmodSync(join(writable, 'torchserve-ts'), 0o777)
  expect(chosen({ XDG_CACHE_HOME: writable })).toEqual([])

  for (const planted of ['torchserve-ts', 'torchserve-ts/compiled']) {
    const home = tempDir()
    if (planted.includes('/')) mkdirSync(join(home, 'torchserve-ts'), { mode: 0o700 })
    symlinkSync(tempDir(), join(home, planted))
    expect(chosen({ XDG_CACHE_HOME: home })).toEqual([])
  }
})

test('the user’s own NODE_COMPILE_CACHE stays, and nothing is made for it', () => {
  const home = tempDir()
  expect(chosen({ XDG_CACHE_HOME: home, NODE_COMPILE_CACHE: '/elsewhere' })).toEqual([])
  expect(readdirSync(home)).toEqual([])
})

test('a cache that cannot be made does not hinder the command', async () => {
  const file = join(tempDir(), 'file')
  writeFileSync(file, '')
  for (const home of [file, join(file, 'below'), '/proc/none']) {
    expect(chosen({ XDG_CACHE_HOME: home })).toEqual([])
    const env = { ...process.env, NODE_OPTIONS: '', XDG_CACHE_HOME: home }
    const { stdout } = await execa(process.execPath, [CLI, '--version'], { env })
    expect(stdout).toMatch(/^TorchServe-TS Version is /)
  }
})

test('a damaged cache does not hinder the command', async () => {
  const home = tempDir()
  const env = { ...process.env, NODE_OPTIONS: '', XDG_CACHE_HOME: home }
  const version = () => execa(process.execPath, [CLI, '--version'], { env })
  const { stdout } = await version()
  const folder = join(home, 'torchserve-ts', 'compiled')
  const isKept = 'enableCompileCache' in (await import('node:module')).default
  const files = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : []
  const cached = files.filter((entry) => entry.isFile())
  expect(cached.length > 0).toBe(isKept)
  for (const { parentPath, name } of cached) writeFileSync(join(parentPath, name), 'damaged')
  expect((await version()).stdout).toBe(stdout)
})
