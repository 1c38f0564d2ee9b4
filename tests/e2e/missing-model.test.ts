import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { digestOf } from '../../frontend/auth/identity-source.ts'
import { rawRequest } from '../support/raw-http.ts'
import { CLI, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

test('a start with a model that is not there names the store that was searched, in one line', async () => {
  const folder = tempDir()
  const store = join(folder, 'store')
  mkdirSync(store)
  const flags = ['--start', '--foreground', '--ncs', '--disable-token-auth', '--model-store', store]
  const env = { NODE_OPTIONS: '', TEMP: folder }
  const { exitCode, stderr } = await execa(process.execPath, [CLI, ...flags, '--models', 'gone.mar'], {
    cwd: folder,
    env,
    reject: false,
  })
  expect([exitCode, stderr.split('\n')]).toEqual([
    1,
    [
      `torchserve-ts: Failed to load model: gone.mar: Model not found at: gone.mar, searched in the model store ${store}`,
    ],
  ])
})

test('the answer to a name that no model has names the nearest that its sender may use, on every dialect', async () => {
  const folder = tempDir()
  writeFileSync(join(folder, 'handler.mjs'), 'export const handle = () => ["x"]\n')
  const file = join(folder, 'keys.json')
  const scopes = ['inference']
  const key = { name: 'some', sha256: digestOf('tsk_some'), scopes, models: ['my_*'] }
  const all = { name: 'all', sha256: digestOf('tsk_all'), scopes }
  writeFileSync(file, JSON.stringify({ keys: [key, all] }))
  const models = [`my_first_model=${folder}`, `secret_model=${folder}`]
  const server = await startServer({ models, config: { api_keys_file: file }, flags: [] })
  const ask = async (path: string, secret: string, body = 'x') => {
    const headers = { authorization: `Bearer tsk_${secret}`, 'content-type': 'application/json' }
    const {
      status,
      headers: got,
      body: text,
    } = await rawRequest(server.ports.inference, path, { headers, body })
    expect(status).toBe(404)
    return [got['x-hint'], text] as const
  }
  const hint = 'did you mean the model my_first_model?'
  const [torchserve, body] = await ask('/predictions/my-first-model', 'some')
  expect([torchserve, JSON.parse(body)]).toEqual([
    hint,
    { code: 404, type: 'ModelNotFoundException', message: 'Model not found: my-first-model' },
  ])
  expect((await ask('/v2/models/my.First.model/infer', 'some', '{"inputs":[]}'))[0]).toBe(hint)
  const openai = '{"model":"my-first-modle","prompt":"x"}'
  expect(await ask('/v1/completions', 'all', openai)).toEqual([
    hint,
    expect.stringContaining('"Model not found: my-first-modle; did you mean my_first_model?"'),
  ])
  expect((await ask('/predictions/secret-model', 'all'))[0]).toBe('did you mean the model secret_model?')
  expect((await ask('/predictions/secret-model', 'some'))[0]).toBeUndefined()
  expect((await ask('/predictions/nothing_like_it', 'all'))[0]).toBeUndefined()
  await server.stop()
})
