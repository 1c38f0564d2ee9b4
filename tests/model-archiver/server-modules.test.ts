import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { serverModules } from '../../model-archiver/package-root.ts'
import { tempDir } from '../support/temp.ts'

/** A folder below a new one. */
function folder(base: string, ...path: string[]): string {
  const whole = join(base, ...path)
  mkdirSync(whole, { recursive: true })
  return whole
}

test.each([
  ['npm: the folder that has it', ['app', 'node_modules', 'torchserve-ts'], ['app', 'node_modules']],
  [
    "pnpm, which links packages: the project's",
    ['app', 'node_modules', '.pnpm', 'torchserve-ts@0.1.0', 'node_modules', 'torchserve-ts'],
    ['app', 'node_modules'],
  ],
  [
    "pnpm in a workspace: the workspace's",
    ['node_modules', '.pnpm', 'torchserve-ts@0.1.0_a', 'node_modules', 'torchserve-ts'],
    ['node_modules'],
  ],
])('the modules of a server that was installed by %s', (_how, root, modules) => {
  const base = tempDir()
  // Those of others above it are not meant.
  folder(base, 'node_modules', 'koa')
  expect(serverModules(folder(base, ...root))).toBe(join(base, ...modules))
})

test.each([
  ['its own', ['torchserve-ts', 'node_modules']],
  ['those of the workspace that it is in', ['node_modules']],
])('a checkout has %s', (_which, modules) => {
  const base = tempDir()
  folder(base, ...modules, 'koa')
  // Tools put folders there without its dependencies.
  folder(base, 'torchserve-ts', 'node_modules', '.cache')
  expect(serverModules(join(base, 'torchserve-ts'))).toBe(join(base, ...modules))
})
