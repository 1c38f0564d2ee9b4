import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { asHandler } from '../../backend-worker/loader.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'
import { BLOCKS, type Block } from './blocks.ts'
import { NOT_LOADED } from './commands.ts'

const FOLDER = tempDir()
const SHOWN = BLOCKS.filter(
  ({ language, code }) => language === 'ts' && !NOT_LOADED.some(([words]) => code.includes(words)),
)

/** The blocks of a page with names are one project; each other block is one of its own. */
function pathOf({ page, line, file }: Block): string {
  const project = page.replaceAll(/[/\\]/g, '-')
  return file === undefined ? join(FOLDER, `${project}-${line}`, 'handler.ts') : join(FOLDER, project, file)
}

beforeAll(() => {
  for (const block of SHOWN) {
    mkdirSync(join(pathOf(block), '..'), { recursive: true })
    writeFileSync(pathOf(block), block.code)
  }
})

test('all TypeScript of the documentation has the types of the package', async () => {
  const modules = join(REPOSITORY, 'node_modules')
  const tsconfig = {
    extends: join(REPOSITORY, 'tsconfig.json'),
    compilerOptions: {
      rootDir: '/',
      typeRoots: [join(modules, '@types')],
      // Those who read a page have other settings for what they do not use.
      noUnusedParameters: false,
      paths: {
        'torchserve-ts': [join(REPOSITORY, 'backend-worker', 'index.ts')],
        'torchserve-ts/testing': [join(REPOSITORY, 'backend-worker', 'testing.ts')],
      },
    },
    include: ['**/*.ts'],
  }
  writeFileSync(join(FOLDER, 'package.json'), '{"type":"module"}')
  writeFileSync(join(FOLDER, 'tsconfig.json'), JSON.stringify(tsconfig))
  const tsc = join(modules, 'typescript', 'bin', 'tsc')
  const { stdout } = await execa(process.execPath, [tsc, '-p', FOLDER], { cwd: FOLDER, reject: false })
  expect(stdout).toBe('')
})

test('every handler of the documentation loads', async () => {
  const handlers = SHOWN.filter(({ file }) => file?.endsWith('.test.ts') !== true)
  expect(handlers.length).toBeGreaterThan(18)
  const unable: string[] = []
  for (const block of handlers) {
    const exports = (await import(pathOf(block))) as Record<string, unknown>
    // A workflow's functions have names of their own.
    const found = [exports['default'], exports, ...Object.values(exports)].some(
      (exported) => exported !== undefined && asHandler(exported) !== undefined,
    )
    if (!found) unable.push(`${block.page}:${block.line}`)
  }
  expect(unable).toEqual([])
})
