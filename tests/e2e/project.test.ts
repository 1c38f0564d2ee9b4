import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { DevServer } from '../support/dev-server.ts'
import { installPackage, PACKAGE_ENV as env } from '../support/installed-package.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY } from '../support/server.ts'
import { Serve } from '../support/serve-command.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

let folder: string

beforeAll(async () => {
  folder = tempDir()
  await installPackage(folder)
}, 180_000)

const packageFolder = (): string => join(folder, 'node_modules', 'torchserve-ts')
const bin = (name: string): string => join(folder, 'node_modules', '.bin', name)

/** Makes a project `my-TEMPLATE` with the installed package. @returns its folder */
async function init(template: string): Promise<string> {
  const flags = ['init', `my-${template}`, '--template', template]
  await execa(bin('torchserve-ts'), flags, { cwd: folder, env })
  return join(folder, `my-${template}`)
}

/** With the compiler and the types of this repository. */
async function checkTypes(project: string): Promise<void> {
  link(join(REPOSITORY, 'node_modules', '@types', 'node'), join(project, 'node_modules', '@types', 'node'))
  const tsc = join(REPOSITORY, 'node_modules', 'typescript', 'bin', 'tsc')
  await execa(process.execPath, [tsc, '-p', project], { env })
}

/** With the loader of this repository. */
async function runTests(project: string): Promise<void> {
  const tsx = pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href
  await execa(process.execPath, ['--import', tsx, '--test', 'handler.test.ts'], { cwd: project, env })
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(target, path)
}

test('init makes a project, dev serves it, and a save is what the next request gets', async () => {
  const project = await init('text-stream')
  const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    dependencies: unknown
  }
  expect(dependencies).toEqual({
    'torchserve-ts': expect.stringMatching(/^file:.*\/torchserve-ts-[\d.]+\.tgz$/),
  })
  await checkTypes(project)
  await runTests(project)
  const server = new DevServer('.', project, join(packageFolder(), 'dist', 'frontend', 'cli.js'))
  try {
    await server.said('each save is loaded')
    const request = { headers: { 'content-type': 'text/plain' }, body: 'one two three' }
    const before = new RawRequest(server.port, '/predictions/my-text-stream', request)
    await before.gotChunks(1)
    const chat = { model: 'my-text-stream', messages: [{ role: 'user', content: 'Hi' }] }
    const body = JSON.stringify(chat)
    const answer = await rawRequest(server.port, '/v1/chat/completions', { body })
    expect(JSON.parse(answer.body)).toMatchObject({ choices: [{ message: { role: 'assistant' } }] })
    const handler = join(project, 'handler.ts')
    writeFileSync(handler, readFileSync(handler, 'utf8').replace('yield [`', 'yield [`new '))
    await server.said('the new code serves')
    const after = await rawRequest(server.port, '/predictions/my-text-stream', request)
    expect([(await before.done).body, after.body]).toEqual([
      'one\ntwo\nthree\n',
      'new one\nnew two\nnew three\n',
    ])
  } finally {
    expect(await server.stop()).toBe(0)
  }
})

describe('with the packages that GGUF needs', () => {
  beforeAll(() => {
    for (const name of ['node-llama-cpp', '@huggingface/jinja'])
      link(join(REPOSITORY, 'node_modules', name), join(folder, 'node_modules', name))
  })

  test('init makes a chat of a .gguf file, with handler and test', async () => {
    const project = await init('gguf-chat')
    await checkTypes(project)
    await runTests(project)
  })

  test('one command of the package serves a .gguf file, and its curl lines work', async () => {
    const weights = join(REPOSITORY, 'model-store', 'tiny-llama', 'model.gguf')
    const served = new Serve([weights, '--name', 'tiny'], { cli: bin('torchserve-ts') })
    await served.wrote('OpenAI:')
    const answers = await served.curls()
    expect([...answers.keys()]).toEqual(['TorchServe', 'Open Inference', 'OpenAI'])
    expect(JSON.parse(answers.get('Open Inference')!)).toMatchObject({ model_name: 'tiny' })
    expect(answers.get('OpenAI')).toMatch(/^data: .*chat\.completion\.chunk[\s\S]*data: \[DONE\]/)
    expect(await served.stop()).toBe(0)
  })
})

test('an ONNX project downloads nothing for GPUs, and dev names the package that it lacks', async () => {
  const project = await init('onnx')
  const flags = ['config', 'get', 'onnxruntime-node-install']
  expect((await execa('npm', flags, { cwd: project, env })).stdout).toBe('skip')
  const server = new DevServer('.', project, join(packageFolder(), 'dist', 'frontend', 'cli.js'))
  try {
    await server.said('each save is loaded')
    await server.said('The package onnxruntime-node is not installed.')
  } finally {
    expect(await server.stop()).toBe(0)
  }
})

test('init makes a handler in Python with its test', async () => {
  const project = await init('python')
  await execa('python3', ['-m', 'unittest'], { cwd: project, env })
})

test('init overwrites nothing, and asks for a template that there is', async () => {
  const project = join(folder, 'mine')
  mkdirSync(project)
  writeFileSync(join(project, 'package.json'), '{}')
  const run = (...flags: string[]): Promise<{ exitCode?: number; stderr: string }> =>
    execa(bin('torchserve-ts'), ['init', ...flags], { cwd: folder, env, reject: false })
  const [conflict, unknown, missing] = [
    await run('mine', '--template', 'text-stream'),
    await run('mine', '--template', 'java'),
    await run('mine'),
  ]
  expect(conflict.stderr).toContain('mine must not have package.json: name another folder')
  expect(unknown.stderr).toContain('Allowed choices are text-stream, onnx, gguf-chat, python')
  expect(missing.stderr).toContain(
    '--template must be one of text-stream, onnx, gguf-chat, python. Set it: init can ask only in a terminal',
  )
  expect([conflict, unknown, missing].map(({ exitCode }) => exitCode)).toEqual([1, 1, 1])
  expect([readdirSync(project), readFileSync(join(project, 'package.json'), 'utf8')]).toEqual([
    ['package.json'],
    '{}',
  ])
})

test('npm create torchserve-ts is init', async () => {
  const create = join(folder, 'node_modules', 'create-torchserve-ts')
  cpSync(join(REPOSITORY, 'create-torchserve-ts'), create, { recursive: true })
  const flags = [join(create, 'create.mjs'), 'created', '--template', 'python']
  const { stdout } = await execa(process.execPath, flags, { cwd: folder, env })
  expect(stdout).toContain(
    'Next: cd created && pip install -r requirements.txt && npm install && npm run dev',
  )
  expect(existsSync(join(folder, 'created', 'handler.py'))).toBe(true)
})
