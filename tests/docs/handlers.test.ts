import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { basename, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'
import { BLOCKS, type Block } from './blocks.ts'

/** A page of the handler guide is a model: what its blocks name are the files of its folder. */
const FOLDER = tempDir()
const HERE = BLOCKS.filter(({ page }) => page.startsWith(join('docs', 'handlers')))
const PAGES = [...new Set(HERE.filter(({ language }) => language === 'ts').map(({ page }) => page))]

for (const { page, file, code } of HERE) {
  if (file === undefined) continue
  mkdirSync(folderOf(page), { recursive: true })
  writeFileSync(join(folderOf(page), file), code)
}

function folderOf(page: string): string {
  return join(FOLDER, nameOf(page))
}

function nameOf(page: string): string {
  return basename(page, '.md')
}

describe('the commands of the handler guide', () => {
  const consoles = HERE.filter(({ language }) => language === 'console')
  let port: number

  beforeAll(async () => {
    const pages = new Set(consoles.map(({ page }) => page))
    const models = [...pages].map((page) => `${nameOf(page)}=${folderOf(page)}`)
    const server = await startServer({ models })
    await Promise.all([...pages].map((page) => server.ready(nameOf(page))))
    port = server.ports.inference
  })

  test.each(consoles.map((block) => [`${block.page}:${block.line}`, block] as const))(
    'print what the page shows: %s',
    async (_, block) => {
      for (const { command, output } of commandsOf(block)) {
        const script = `curl() { command curl --silent "$@"; }\n${command.replaceAll(':8080/', `:${port}/`)}`
        const { stdout } = await execa('bash', ['-c', script], { reject: false })
        expect(stdout.trimEnd()).toMatch(output)
      }
    },
  )
})

/** What follows `$ `, and what it prints; `...` stands for anything within a line. */
function commandsOf({ code }: Block): { command: string; output: RegExp }[] {
  return code
    .split(/^\$ /m)
    .slice(1)
    .map((entry) => {
      const [command, ...lines] = entry.split('\n')
      const pattern = lines
        .join('\n')
        .trimEnd()
        .split('...')
        .map((text) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
        .join('[^\\n]*')
      return { command: command!, output: new RegExp(`^${pattern}$`) }
    })
}

test('the tests of the pages pass with the runner that projects of init have', async () => {
  mkdirSync(join(FOLDER, 'node_modules'))
  symlinkSync(REPOSITORY, join(FOLDER, 'node_modules', 'torchserve-ts'))
  writeFileSync(join(FOLDER, 'package.json'), '{"type":"module"}')
  const files = HERE.filter(({ file }) => file?.endsWith('.test.ts') === true)
  const paths = files.map(({ page, file }) => join(nameOf(page), file!))
  const tests = files.flatMap(({ code }) => code.match(/^test\(/gm) ?? [])
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  const { stdout } = await execa(
    process.execPath,
    ['--import', tsx, '--test', '--test-reporter', 'tap', ...paths],
    { cwd: FOLDER, env: { ...process.env, NODE_OPTIONS: '' }, reject: false },
  )
  expect(stdout).toMatch(new RegExp(`^# tests ${tests.length}\\n(?:#.*\\n)?# pass ${tests.length}$`, 'm'))
})

test('every page of the guide with TypeScript has a handler with a test', () => {
  const lacking = PAGES.filter((page) => {
    const files = HERE.filter((block) => block.page === page).map(({ file }) => file)
    return !files.includes('handler.ts') || !files.includes('handler.test.ts')
  })
  expect(lacking).toEqual([])
})

test('docs/handlers/exports.md names every export', () => {
  const source = readFileSync(join(REPOSITORY, 'backend-worker', 'index.ts'), 'utf8')
  const exported = [...source.matchAll(/^export (?:type )?\{([^}]+)\}/gm)]
    .flatMap(([, names]) => names!.split(','))
    .map((name) => name.replace(/^\s*type /, '').trim())
    .filter((name) => name !== '')
  const page = readFileSync(join(REPOSITORY, 'docs', 'handlers', 'exports.md'), 'utf8')
  const named = [...page.matchAll(/`(\w+)`/g)].map((match) => match[1])
  expect(exported.length).toBeGreaterThan(50)
  expect(exported.filter((name) => !named.includes(name))).toEqual([])
})
