import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from '@jest/globals'
import { bundleHandler, type BundleResult } from '../../model-archiver/bundle.ts'
import { isNativePackage, installedPackage, packageNameOf } from '../../model-archiver/packages.ts'
import { failure, tempFolder } from './temp.ts'
import { execFileSync } from '../support/tools.ts'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

function bundle(folder: string, external?: string[]): Promise<BundleResult> {
  return bundleHandler({
    entry: join(folder, 'handler.ts'),
    outFile: join(folder, 'out/handler.mjs'),
    external,
  })
}

/** What the bundled module exports as `value`, in a real Node process. */
function run(folder: string): unknown {
  const script = "import('./out/handler.mjs').then((m) => console.log(JSON.stringify(m.value)))"
  return JSON.parse(execFileSync(process.execPath, ['-e', script], { cwd: folder, encoding: 'utf8' }))
}

describe('a bundle', () => {
  test('holds TypeScript and the plain packages it uses, also CommonJS ones that need require and __dirname', async () => {
    const folder = tempFolder({
      'handler.ts': `
        import { createRequire } from 'node:module'
        import old from 'old'
        import { double } from './double.ts'
        const require = createRequire(import.meta.url)
        const n: number = 21
        export const value = [double(n), old.folder, old.name, typeof require('node:fs').statSync]`,
      'double.ts': 'export const double = (n: number): number => n * 2',
      'node_modules/old/package.json': '{"name":"old","main":"lib"}',
      'node_modules/old/lib/index.js': `
        const pick = (name) => require(name)
        exports.folder = typeof __dirname
        exports.name = require('path').basename(pick('path').join('a', 'b'))`,
    })
    expect(await bundle(folder)).toEqual({ externals: [], warnings: [] })
    expect(run(folder)).toEqual([42, 'string', 'b', 'function'])
  })

  test('has a map to its sources that tells nothing of the machine, so that the same sources give the same bytes', async () => {
    const made = await Promise.all(
      [1, 2].map(async () => {
        const folder = tempFolder({
          'in/handler.ts': "import { half } from '../half.ts'\nexport const value: number = half(42)",
          'half.ts': 'export const half = (n: number): number => n / 2',
        })
        const outFile = join(tempFolder(), 'handler.mjs')
        await bundleHandler({ entry: join(folder, 'in/handler.ts'), outFile })
        return [readFileSync(outFile, 'utf8'), readdirSync(join(outFile, '..'))] as const
      }),
    )
    const [text, files] = made[0]!
    expect(files).toEqual(['handler.mjs'])
    expect(made[1]).toEqual(made[0])
    const [, base64 = ''] = /\n\/\/# sourceMappingURL=data:application\/json;base64,(\S+)\n$/.exec(text)!
    expect(JSON.parse(Buffer.from(base64, 'base64').toString())).toEqual({
      version: 3,
      sources: ['half.ts', 'handler.ts'],
      mappings: expect.stringMatching(/./),
      names: [],
    })
  })

  test('never holds torchserve-ts', async () => {
    const folder = tempFolder({
      'handler.ts':
        "import { value as v } from 'torchserve-ts'\nimport 'torchserve-ts/testing'\nexport const value = v",
      'tsconfig.json': '{"compilerOptions":{"paths":{"torchserve-ts":["./copy.ts"]}}}',
      'copy.ts': "export const value = 'a copy'",
      'node_modules/torchserve-ts/package.json':
        '{"name":"torchserve-ts","type":"module","exports":{".":"./index.js","./testing":"./index.js"}}',
      'node_modules/torchserve-ts/index.js': "export const value = 'the one'",
    })
    expect((await bundle(folder)).externals).toEqual([])
    expect(run(folder)).toBe('the one')
  })

  test('leaves out what it is told to', async () => {
    const folder = tempFolder({
      'handler.ts': "import a from 'a/deep'\nimport b from '@s/b'\nexport const value = [a, b]",
      'node_modules/a/package.json': '{"name":"a","exports":{"./deep":"./deep.js"}}',
      'node_modules/a/deep.js': 'module.exports = 1',
      'node_modules/@s/b/package.json': '{"name":"@s/b","exports":"./b.js"}',
      'node_modules/@s/b/b.js': 'module.exports = 2',
    })
    expect((await bundle(folder, ['a'])).externals).toEqual(['a'])
    expect(run(folder)).toEqual([1, 2])
  })

  test('leaves out native packages, however they show it', async () => {
    const folder = tempFolder({
      'handler.ts': "import a from 'declares'\nimport b from 'uses-addon'\nexport const value = [a, b]",
      'node_modules/declares/package.json':
        '{"name":"declares","optionalDependencies":{"@d/d-linux-x64":"1"}}',
      'node_modules/declares/index.js': 'module.exports = "d"',
      'node_modules/uses-addon/package.json': '{"name":"uses-addon"}',
      'node_modules/uses-addon/index.js': 'module.exports = require("hidden-addon").x',
      'node_modules/hidden-addon/package.json': '{"name":"hidden-addon"}',
      'node_modules/hidden-addon/index.js': 'exports.x = require("./1/2/3/4/5/6/7/8/9/deep.js")',
      'node_modules/hidden-addon/1/2/3/4/5/6/7/8/9/deep.js':
        'try { module.exports = require("./addon.node") } catch { module.exports = "n" }',
      'node_modules/hidden-addon/1/2/3/4/5/6/7/8/9/addon.node': '',
    })
    expect((await bundle(folder)).externals).toEqual(['declares', 'hidden-addon'])
    expect(run(folder)).toEqual(['d', 'n'])
  })

  test('only warns of packages that packages miss', async () => {
    const folder = tempFolder({
      'handler.ts': "import a from 'a'\nexport const value = a",
      'node_modules/a/package.json': '{"name":"a"}',
      'node_modules/a/index.js': 'module.exports = 1; if (!module) require("optional-thing/sub")',
    })
    const { externals, warnings } = await bundle(folder)
    expect(externals).toEqual([])
    expect(warnings).toEqual([expect.stringContaining('Package optional-thing is not installed here')])
    expect(run(folder)).toBe(1)
  })

  test("refuses the handler's own addon with a line that names it", async () => {
    const folder = tempFolder({ 'handler.ts': "import './own.node'", 'own.node': '' })
    const error = await failure(bundle(folder))
    expect(error.code).toBe('INVALID_MODEL')
    expect(error.message).toContain('handler.ts:1: No loader is configured for ".node" files: own.node')
  })
})

describe('a native package', () => {
  test.each(['node-llama-cpp', 'esbuild', '@swc/core', 'msgpackr-extract'])('is %s', async (name) => {
    expect(await isNativePackage(join(ROOT, 'node_modules', name))).toBe(true)
  })

  test.each(['koa', 'zod', 'msgpackr', 'yazl', 'execa', 'prettier'])('is not %s', async (name) => {
    expect(await isNativePackage(join(ROOT, 'node_modules', name))).toBe(false)
  })

  test.each([
    ['gypfile', { 'package.json': '{"gypfile":true}' }, true],
    ['binary', { 'package.json': '{"binary":{"napi_versions":[7]}}' }, true],
    ['napi', { 'package.json': '{"napi":{"name":"x"}}' }, true],
    ['cpu', { 'package.json': '{"cpu":["x64"]}' }, true],
    [
      'an install script',
      { 'package.json': '{"scripts":{"install":"prebuild-install || node-gyp rebuild"}}' },
      true,
    ],
    ['a helper', { 'package.json': '{"dependencies":{"bindings":"1"}}' }, true],
    ['sharp', { 'package.json': '{"optionalDependencies":{"@img/sharp-linuxmusl-arm64":"1"}}' }, true],
    ['binding.gyp', { 'binding.gyp': '{}' }, true],
    ['an addon', { 'package.json': '{}', 'bin/linux/x64/x.node': '' }, true],
    ['an addon of somebody else', { 'package.json': '{}', 'node_modules/other/x.node': '' }, false],
    ['another optional package', { 'package.json': '{"optionalDependencies":{"linux-tools":"1"}}' }, false],
    ['a command', { 'package.json': '{"bin":{"x":"x.js"},"os":[]}' }, false],
    ['nonsense', { 'package.json': 'not json' }, false],
    ['nothing', {}, false],
  ])('shows by %s', async (_what, files, native) => {
    expect(await isNativePackage(tempFolder(files))).toBe(native)
  })
})

describe('the name of a package', () => {
  test.each([
    ['a', 'a'],
    ['a/b/c.js', 'a'],
    ['@s/a/b', '@s/a'],
    ['fs', undefined],
    ['fs/promises', undefined],
    ['node:sqlite', undefined],
    ['./a', undefined],
    ['/a', undefined],
    ['#internal', undefined],
    ['@s', undefined],
  ])('in %s is %s', (specifier, name) => {
    expect(packageNameOf(specifier)).toBe(name)
  })

  test('is known from a file', () => {
    expect(installedPackage('/x/node_modules/a/node_modules/@s/b/lib/c.js')).toEqual({
      name: '@s/b',
      folder: '/x/node_modules/a/node_modules/@s/b',
    })
    expect(installedPackage('/x/src/a.js')).toBeUndefined()
  })
})
