import { mkdirSync, readdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, test } from '@jest/globals'
import { checkConfig } from '../../frontend/cli/check-config.ts'
import { parseFlags } from '../../frontend/cli/flags.ts'
import { tempDir } from '../support/temp.ts'

const home = process.cwd()
afterEach(() => process.chdir(home))

/** A working directory with these files and an empty store. */
function withFiles(files: Record<string, string>): string {
  const folder = realpathSync(tempDir())
  mkdirSync(join(folder, 'store'))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(folder, name, '..'), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  process.chdir(folder)
  return folder
}

async function check(...flags: string[]): Promise<{ status: number; out: string[]; err: string[] }> {
  const out: string[] = []
  const err: string[] = []
  const output = { out: (line: string) => out.push(line), err: (line: string) => err.push(line) }
  const parsed = parseFlags(['--check-config', '--model-store', 'store', ...flags], output)
  if (typeof parsed === 'number') throw new Error(err.join('\n'))
  return { status: await checkConfig(parsed, output), out, err }
}

const HANDLER = 'export const handle = (requests) => requests\n'

test('--check-config prints each setting with its origin, and checks the models', async () => {
  const folder = withFiles({
    'config.properties': 'job_queue_size=7\nload_models=good\nenable_envvars_config=true\nvmargs=-Xmx1g\n',
    'store/good/handler.mjs': HANDLER,
    'store/good/model-config.yaml': 'minWorkers: 2\nmaxWorkers: 3\nbatchSize: many\n',
  })
  process.env['TS_MAX_REQUEST_SIZE'] = '99'
  const { status, out, err } = await check()
  Reflect.deleteProperty(process.env, 'TS_MAX_REQUEST_SIZE')
  expect(out).toEqual(
    expect.arrayContaining([
      'job_queue_size = 7 (config.properties:1)',
      'max_request_size = 99 (environment variable TS_MAX_REQUEST_SIZE)',
      `model_store = ${join(folder, 'store')} (--model-store)`,
      'max_response_size = 6553500 (default)',
      'Model good 1.0: runtime node, workers 2 to 3, batchSize 1, maxBatchDelay 100, deviceType cpu',
      'The configuration can be used.',
    ]),
  )
  expect(err.join('\n')).toContain('Warning: config.properties:4: vmargs has no effect here')
  expect(err.join('\n')).toContain(
    'Warning: model-config of good: batchSize must be an integer, found "many"',
  )
  expect(status).toBe(0)
  // It starts nothing and leaves nothing.
  expect(readdirSync(folder).sort()).toEqual(['config.properties', 'store'])
})

test('passwords are not shown', async () => {
  withFiles({
    'config.properties': 'keystore_pass=hidden-pass\nallowed_urls=https://me:hidden-word@host/.*\n',
  })
  const { out, err } = await check()
  expect([...out, ...err].join('\n')).not.toContain('hidden')
  expect(out).toContain('allowed_urls = https://***@host/.* (config.properties:2)')
})

test.each<[string, Record<string, string>, string[], string]>([
  [
    'a bad value',
    { 'config.properties': 'job_queue_size=many' },
    [],
    'config.properties:1: job_queue_size must be a whole number',
  ],
  [
    'a variable that is not set',
    { 'config.properties': 'model_store=$$NO_SUCH$$' },
    [],
    'Invalid Environment Variable NO_SUCH',
  ],
  ['a store that is not there', {}, ['--model-store', 'nowhere'], '--model-store directory not found'],
  [
    'a model that is not there',
    {},
    ['--models', 'gone.mar'],
    'gone.mar: Model not found at: gone.mar, searched in the model store /',
  ],
  ['a broken archive', { 'store/x.mar': 'junk' }, ['--models', 'all'], 'x.mar: The archive must be a zip'],
  [
    'a model config that cannot be read',
    { 'store/x/handler.mjs': HANDLER, 'store/x/model-config.yaml': 'minWorkers: [' },
    ['--models', 'x'],
    'x: Model config file model-config.yaml cannot be used',
  ],
  [
    'a keys file that is not there',
    { 'config.properties': 'api_keys_file=keys.json' },
    [],
    'keys.json cannot be read',
  ],
  [
    'a keys file with an unknown scope',
    {
      'config.properties': 'api_keys_file=keys.json',
      'keys.json': `{"keys":[{"name":"a","sha256":"${'0'.repeat(64)}","scopes":["all"]}]}`,
    },
    [],
    'keys[0].scopes[0] must be one of',
  ],
])('%s is one line and status 1', async (_what, files, flags, line) => {
  withFiles(files)
  const { status, out, err } = await check(...flags)
  expect(err.filter((each) => !each.startsWith('Warning'))).toEqual([expect.stringContaining(line)])
  expect(out).toContain('The configuration cannot be used.')
  expect(status).toBe(1)
})

test.each([
  ['', 'API keys in use: 0; client certificates: 0', true],
  ['{"keys": []}', 'API keys in use: 0; client certificates: 0', true],
  [
    `{"keys":[{"name":"a","sha256":"${'0'.repeat(64)}","scopes":["inference"]}]}`,
    'API keys in use: 1; client certificates: 0',
    false,
  ],
])('the keys file %j is counted, and one without entries is a warning', async (text, line, isEmpty) => {
  withFiles({ 'config.properties': 'api_keys_file=keys.json', 'keys.json': text })
  const { status, out, err } = await check()
  expect(out).toContainEqual(expect.stringContaining(line))
  expect(err.some((each) => each.includes('has no entries: no API key is valid'))).toBe(isEmpty)
  expect(status).toBe(0)
})
