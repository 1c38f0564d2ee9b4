import { join } from 'node:path'
import { beforeAll, expect, test } from '@jest/globals'
import { writeApiKeys } from '../support/api-keys.ts'
import { rawRequest } from '../support/raw-http.ts'
import { CLI, startServer, type ServerOptions } from '../support/server.ts'
import { packEcho, sha256 } from '../support/echo-archive.ts'
import { tempDir } from '../support/temp.ts'
import { execa } from '../support/tools.ts'

/** Rules that an operator adds to config.properties hold for the models that a restart brings back. */

const HINT = /\(model_snapshot at \S+-shutdown\.cfg:\d+; start with --ncs to ignore it\)/

let state: { folder: string; modelStore: string }

/** A server that had an archive without a pin registered, and has ended. */
beforeAll(async () => {
  const [folder, modelStore] = [tempDir(), tempDir()]
  await packEcho(modelStore, 'echo')
  state = { folder, modelStore }
  const first = await startServer({ ...state, snapshots: true })
  expect((await first.manage('POST', '/models?url=echo.mar&initial_workers=1')).status).toBe(200)
  await first.stop()
})

const REFUSED: [string, () => ServerOptions['config'], RegExp][] = [
  [
    'an archive without the pin of the key models',
    () => ({ models: `{"echo": {"1.0": {"sha256": "${'0'.repeat(64)}"}}}` }),
    /must have the SHA-256/,
  ],
]

test.each(REFUSED)('%s is refused by a restart and by --check-config', async (_what, config, why) => {
  const start = startServer({ ...state, snapshots: true, config: config() })
  const { message } = await start.then(
    () => new Error('It has started'),
    (error: unknown) => error as Error,
  )
  expect(message).toMatch(why)
  expect(message).toMatch(HINT)
  expect(message).not.toContain('registered from')
  const { exitCode, stdout, stderr } = await execa(
    process.execPath,
    [CLI, '--check-config', '--model-store', state.modelStore],
    { cwd: state.folder, reject: false, env: { LOG_LOCATION: 'logs', NODE_OPTIONS: '' } },
  )
  expect(exitCode).toBe(1)
  expect(stdout).toMatch(/^Models come from the snapshot \S+-shutdown\.cfg; start with --ncs to ignore it$/m)
  expect(stderr).toMatch(why)
  expect(stderr).toMatch(HINT)
})

test('an archive with the pin of the key models is loaded', async () => {
  const pin = sha256(join(state.modelStore, 'echo.mar'))
  const config = { models: `{"echo": {"1.0": {"sha256": "${pin}"}}}` }
  const server = await startServer({ ...state, snapshots: true, config })
  expect((await server.describe('echo'))[0]!.archivePinned).toBe(true)
  await server.stop()
})

test('an api_keys_file that was added keeps clients without a key out', async () => {
  const keys = writeApiKeys([{ name: 'app', scopes: ['inference'] }])
  const server = await startServer({ ...state, snapshots: true, config: { api_keys_file: keys } })
  const predict = async (headers: Record<string, string>): Promise<number> =>
    (await rawRequest(server.ports.inference, '/predictions/echo', { headers })).status
  expect(await predict({})).toBe(400)
  expect(await predict({ authorization: 'Bearer tsk_app' })).toBe(200)
  await server.stop()
})
