import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { parse } from 'yaml'
import { INERT_KEYS } from '../../frontend/config/removed-keys.ts'
import { KEYS } from '../../frontend/config/keys.ts'
import { freePorts } from '../support/ports.ts'
import { REPOSITORY, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { BLOCKS, blocksOf } from './blocks.ts'
import { NOT_RUN, RUN_BY } from './commands.ts'
import { Shell } from './shell.ts'

let shell: Shell | undefined

afterEach(async () => {
  await shell?.run('torchserve-ts --stop || true')
  shell = undefined
})

/** The commands of a page that run, in its order. */
function commands(page: string): string[] {
  return blocksOf(page)
    .filter(({ language, code }) => language === 'sh' && !NOT_RUN.some(([words]) => code.includes(words)))
    .map(({ code }) => code)
}

const HANDLER = 'export const handle = (requests: unknown[]) => requests.map(() => "hello")\n'

test('docs/authorization.md: keys are made, used and revoked', async () => {
  shell = new Shell()
  const [make, use, change] = commands('docs/authorization.md')
  const made = await shell.run(make!)
  expect(made).toMatch(/mobile-app.*llama\*/)
  const key = made.split('\n').find((line) => /^\S+$/.test(line))
  const model = tempDir()
  writeFileSync(join(model, 'handler.ts'), HANDLER)
  const config = { api_keys_file: join(shell.folder, 'keys.json') }
  const server = await startServer({ models: [`llama-3=${model}`], config, flags: [] })
  const said = await shell.run(use!.replaceAll(':8080/', `:${server.ports.inference}/`), { KEY: key! })
  expect(said).toContain('hello')
  expect(said).toContain('"id":"llama-3"')
  await shell.run(change!)
  expect(await shell.run('torchserve-ts keys list --file keys.json')).not.toContain('mobile-app')
})

test('docs/deploying.md: a handler is packed, checked, served with a key, and stopped', async () => {
  shell = new Shell()
  writeFileSync(join(shell.folder, 'handler.ts'), HANDLER)
  const [inference, ...others] = await freePorts(5)
  const properties = blocksOf('docs/deploying.md').find(({ language }) => language === 'properties')!
  const addresses = [`inference_address=http://127.0.0.1:${inference}`, ...addressesOf(others)]
  writeFileSync(join(shell.folder, 'config.properties'), [properties.code, ...addresses, ''].join('\n'))
  let said = ''
  for (const command of commands('docs/deploying.md'))
    said += await shell.run(command.replaceAll(':8080/', `:${inference}/`))
  expect(said).toContain('The archive runs here.')
  expect(said).toContain('The configuration can be used.')
  expect(said).toContain('hello')
  expect(said).toContain('"status": "Healthy"')
})

test('docs/tls.md: a server with a certificate of its own answers', async () => {
  shell = new Shell()
  const [port, ...others] = await freePorts(5)
  const script = commands('docs/tls.md')
    .join('')
    .replaceAll('8443', String(port))
    .replace("'%s\\n'", `'%s\\n' ${addressesOf(others).join(' ')}`)
  expect(await shell.run(script)).toContain('"status": "Healthy"')
})

test('docs/open-inference.md: the requests to a language model are answered', async () => {
  shell = new Shell()
  const model = join(REPOSITORY, 'model-store', 'tiny-llama')
  const server = await startServer({ models: [`near=${model}`] })
  await server.ready('near')
  const requests = commands('docs/open-inference.md')
    .join('')
    .replaceAll(':8080/', `:${server.ports.inference}/`)
  const said = await shell.run(requests)
  expect(said).toContain('"name":"content"')
  expect(said).toContain('"name":"embedding"')
  expect(said).toContain('"text_output":')
  expect(said).not.toContain('"error"')
})

test('every block has a language', () => {
  expect(places(BLOCKS.filter(({ language }) => language === ''))).toEqual([])
})

test('every command runs in a test, or has a reason not to', () => {
  const shown = BLOCKS.filter(({ language }) => ['sh', 'bash', 'console'].includes(language))
  const open = shown.filter(
    ({ page, code }) =>
      !page.startsWith('docs/handlers/') &&
      RUN_BY[page] === undefined &&
      !NOT_RUN.some(([words]) => code.includes(words)),
  )
  expect(shown.length).toBeGreaterThan(30)
  expect(places(open)).toEqual([])
  const texts = shown.map(({ code }) => code).join('')
  expect(NOT_RUN.filter(([words]) => !texts.includes(words))).toEqual([])
  const files = NOT_RUN.flatMap(([, reason]) => reason.match(/tests\/\S+\.test\.ts/g) ?? [])
  expect(files.filter((file) => !existsSync(join(REPOSITORY, file)))).toEqual([])
  for (const [page, file] of Object.entries(RUN_BY))
    expect(readFileSync(join(REPOSITORY, file), 'utf8')).toContain(page.split('/').at(-1)!)
})

test('every key in a block of properties exists', () => {
  const names = new Set([...Object.values(KEYS), ...INERT_KEYS].map(({ name }) => name))
  const keys = BLOCKS.filter(({ language }) => language === 'properties').flatMap(({ code }) =>
    [...code.matchAll(/^(\w+)=/gm)].map((match) => match[1]!),
  )
  expect(keys.length).toBeGreaterThan(10)
  expect(keys.filter((key) => !names.has(key))).toEqual([])
})

test('every block of YAML and JSON can be read', () => {
  const unread = BLOCKS.filter(({ language, code }) => {
    try {
      if (language === 'json') JSON.parse(code)
      if (language === 'yaml') parse(code)
      return false
    } catch {
      return true
    }
  })
  expect(places(unread)).toEqual([])
})

/** Of every listener but that of inference. */
function addressesOf([management, metrics, grpc, grpcManagement]: readonly number[]): string[] {
  return [
    `management_address=http://127.0.0.1:${management}`,
    `metrics_address=http://127.0.0.1:${metrics}`,
    `grpc_inference_port=${grpc}`,
    `grpc_management_port=${grpcManagement}`,
  ]
}

function places(blocks: readonly { page: string; line: number }[]): string[] {
  return blocks.map(({ page, line }) => `${page}:${line}`)
}
