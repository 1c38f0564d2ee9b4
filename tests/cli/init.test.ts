import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { runInit } from '../../frontend/cli/init/command.ts'
import { TEMPLATE_NAMES, installedFrom } from '../../frontend/cli/init/write-project.ts'
import { named } from '../../frontend/config/key-spec.ts'
import { LISTENER_KEYS } from '../../frontend/config/listener-keys.ts'
import { parseProperties } from '../../frontend/config/properties.ts'
import { REPOSITORY } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

async function init(
  folder: string,
  template = 'python',
): Promise<{ status: number; out: string[]; err: string[] }> {
  const out: string[] = []
  const err: string[] = []
  const output = { out: (line: string) => void out.push(line), err: (line: string) => void err.push(line) }
  return { status: await runInit([folder, '--template', template], output), out, err }
}

test('init makes the folders above its own', async () => {
  const folder = join(tempDir(), 'a', 'b')
  expect(await init(folder)).toMatchObject({ status: 0, err: [] })
  expect(existsSync(join(folder, 'handler.py'))).toBe(true)
})

test('a project of a checkout depends on the checkout, because npm may not have that version', async () => {
  const folder = join(tempDir(), 'mine')
  await init(folder)
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>
  }
  const [, path] = /^file:(.*)$/.exec(dependencies['torchserve-ts']!)!
  expect(join(folder, path!)).toBe(REPOSITORY)
})

test.each([
  ['My Model', 'my-model'],
  ['.My Model', 'my-model'],
  ['-_.x', 'x'],
  ['Größe.2', 'gr-e.2'],
  ['...', 'my-model'],
])('a project in a folder %j has the name %s, and files that git is not to have', async (name, wanted) => {
  const folder = join(tempDir(), name)
  await init(folder)
  const { name: own } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as { name: string }
  expect(own).toBe(wanted)
  expect(existsSync(join(folder, '.gitignore'))).toBe(true)
  const secrets = ['website.key', 'key.pem', 'keys.json', 'key_file.json', '.env', 'model.gguf']
  await execa('git', ['init', '--quiet'], { cwd: folder })
  const { stdout } = await execa('git', ['check-ignore', ...secrets], { cwd: folder })
  expect(stdout.split('\n')).toEqual(secrets)
  expect(existsSync(join(folder, 'gitignore'))).toBe(false)
})

test('a project of a package that npm pack made depends on its file', () => {
  const folder = tempDir()
  const modules = join(folder, 'node_modules')
  mkdirSync(modules)
  const lock = (resolved: string): void =>
    writeFileSync(
      join(modules, '.package-lock.json'),
      JSON.stringify({ packages: { 'node_modules/torchserve-ts': { resolved } } }),
    )
  const from = (): string | undefined => installedFrom(join(modules, 'torchserve-ts'))
  expect(from()).toBe(undefined)
  lock('file:packs/torchserve-ts-0.1.0.tgz')
  const file = join(folder, 'packs/torchserve-ts-0.1.0.tgz')
  // It was removed.
  expect(from()).toBe(undefined)
  mkdirSync(join(folder, 'packs'))
  writeFileSync(file, '')
  expect(from()).toBe(file)
  lock('https://a-registry.example/torchserve-ts/-/torchserve-ts-0.1.0.tgz')
  expect(from()).toBe(undefined)
})

test.each([
  ['text-stream', []],
  ['onnx', []],
  ['gguf-chat', ['It needs a model, model.gguf in its folder: README.md says how to get one']],
  ['python', []],
])('the next steps of %s are all that it takes', async (template, before) => {
  const folder = join(tempDir(), 'mine')
  const { out } = await init(folder, template)
  const pip = existsSync(join(folder, 'requirements.txt')) ? 'pip install -r requirements.txt && ' : ''
  expect(out.slice(1)).toEqual([...before, `Next: cd ${folder} && ${pip}npm install && npm run dev`])
})

test.each(TEMPLATE_NAMES)('README of %s names every port that a second server needs', async (template) => {
  const folder = join(tempDir(), 'mine')
  await init(folder, template)
  const readme = readFileSync(join(folder, 'README.md'), 'utf8')
  const [, block = ''] = /```properties\n([^]*?)```/.exec(readme)!
  const given = parseProperties(block, 'README.md', undefined)
  const ports = Object.values(named(LISTENER_KEYS)).filter(({ name, fallback }) =>
    name.endsWith('_port') ? fallback !== undefined : /^http:.*:\d+$/.test(fallback ?? ''),
  )
  expect(given.map(({ name }) => name)).toEqual(ports.map(({ name }) => name))
  const numbers = given.map(({ text }) => /\d+$/.exec(text)![0])
  expect(new Set(numbers).size).toBe(ports.length)
  for (const { fallback } of ports) expect(numbers).not.toContain(/\d+$/.exec(fallback!)![0])
})

test.each(['/proc/x', '/proc/x/y'])('init of %s ends with one line', async (folder) => {
  const { status, err } = await init(folder)
  expect([status, err]).toEqual([
    1,
    [
      expect.stringContaining(
        `torchserve-ts: ${folder} must be a folder that can be made: name another one (`,
      ),
    ],
  ])
})

test('init of a file leaves it as it is', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'file'), '')
  const { status, err } = await init(join(folder, 'file'))
  expect([status, err]).toEqual([1, [expect.stringContaining('EEXIST')]])
  expect(readdirSync(folder)).toEqual(['file'])
})
