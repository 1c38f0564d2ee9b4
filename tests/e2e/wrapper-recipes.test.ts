import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { isRunning } from '../support/processes.ts'
import { answerOf } from '../support/python/client.ts'
import { REPOSITORY, startServer, type Server, type ServerOptions } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { recipe, script, whyNoBubblewrap } from '../support/wrapper-recipes.ts'

const NO_BUBBLEWRAP = whyNoBubblewrap()
const bubblewrapped = NO_BUBBLEWRAP === undefined ? describe : describe.skip
const asOther = process.getuid?.() === 0 ? describe : describe.skip

/** A server with the models `probe` and `other` from archives, and a key file in its folder. */
async function start(config: ServerOptions['config']): Promise<Server> {
  const folder = tempDir()
  const modelStore = join(folder, 'store')
  mkdirSync(modelStore)
  writeFileSync(join(folder, 'key_file.json'), '{}', { mode: 0o600 })
  for (const name of ['probe', 'other']) {
    const handler = join(REPOSITORY, 'tests', 'support', 'handlers', 'probing', 'handler.ts')
    await createArchive({ modelName: name, version: '1.0', handler, exportPath: modelStore })
  }
  // Another user must be able to reach the folders of its worker.
  chmodSync(folder, 0o711)
  chmodSync(dirname(folder), 0o755)
  const server = await startServer({ folder, modelStore, models: ['probe.mar', 'other.mar'], config })
  await Promise.all(['probe', 'other'].map((model) => server.ready(model)))
  return server
}

/** What the handler of `probe` gets of each attempt in the table of docs/worker-wrapper.md. */
async function attempts(server: Server): Promise<Record<string, boolean>> {
  const { pid, ports, folder } = server
  const { pid: worker } = await server.worker('other')
  const words = readFileSync(`/proc/${worker}/cmdline`, 'latin1').split('\0')
  const socket = words[words.indexOf('--sock-name') + 1]!
  const models = join(folder, 'tmp', 'models')
  const workspaces = readdirSync(models).map((name) => join(models, name))
  const other = workspaces
    .map((path) => join(path, 'p'))
    .find((path) => readdirSync(path).includes('model-other'))!
  const tried: Record<string, Record<string, string | number>> = {
    'read the key file': { attempt: 'read', path: join(folder, 'key_file.json') },
    'read the environment of the server': { attempt: 'read', path: `/proc/${pid}/environ` },
    'read another model': { attempt: 'list', path: join(other, 'model-other') },
    'connect to the management port': { attempt: 'port', port: ports.management },
    'reach the socket of another worker': { attempt: 'list', path: dirname(socket) },
    'signal the server': { attempt: 'signal', pid },
  }
  const results: Record<string, boolean> = {}
  for (const [what, body] of Object.entries(tried)) {
    const answer = await answerOf<{ got?: boolean; stopped?: string }>(server, 'probe', body)
    expect(answer.got ?? answer.stopped).toBeTruthy()
    results[what] = answer.got === true
  }
  return results
}

const ALL = {
  'read the key file': true,
  'read the environment of the server': true,
  'read another model': true,
  'connect to the management port': true,
  'reach the socket of another worker': true,
  'signal the server': true,
}
const NOTHING = Object.fromEntries(Object.keys(ALL).map((what) => [what, false]))

test('without a wrapper a handler may do what the server may', async () => {
  expect(await attempts(await start({}))).toEqual(ALL)
})

bubblewrapped(`bubblewrap${NO_BUBBLEWRAP === undefined ? '' : ` (skipped: ${NO_BUBBLEWRAP})`}`, () => {
  test('keeps a handler from files, ports, sockets and processes', async () => {
    const server = await start({ worker_wrapper: recipe('bwrap') })
    const worker = await server.worker('probe')
    expect(await attempts(server)).toEqual(NOTHING)

    // Pid and memory are the worker's. It ends with its sandbox when it is unloaded or the server is killed.
    expect(readFileSync(`/proc/${worker.pid}/cmdline`, 'latin1').startsWith(process.execPath)).toBe(true)
    expect(worker.memoryUsage).toBeGreaterThan(20_000_000)
    expect((await server.manage('DELETE', '/models/probe')).status).toBe(200)
    const { pid } = await server.worker('other')
    await server.stop('SIGKILL')
    await server.until(
      async () => [pid, worker.pid].filter(isRunning),
      (left) => left.length === 0,
    )
  })

  test('a worker that is killed inside is out of memory', async () => {
    const server = await start({ worker_wrapper: recipe('bwrap') })
    const { pid } = await server.worker('probe')
    process.kill(pid, 'SIGKILL')
    const { lastExit } = await server.until(
      () => server.worker('probe'),
      (worker) => worker.lastExit !== undefined,
    )
    expect(lastExit!.reason).toBe('The process exited with code 137')
    await server.ready('probe')
  })
})

asOther('another user', () => {
  test('is kept from the server, and from other models by a user for each', async () => {
    const path = join(tempDir(), 'as-user')
    writeFileSync(path, script('# as-user USER'))
    chmodSync(path, 0o755)
    chmodSync(dirname(path), 0o711)
    const wrapper = (user: string): string => `${path} ${user} {worker_dir} {work_dir}`
    const one = await start({ worker_wrapper: wrapper('nobody') })
    const kept = {
      'read the key file': false,
      'read the environment of the server': false,
      'signal the server': false,
    }
    expect(await attempts(one)).toEqual({ ...ALL, ...kept })
    const { pid } = await one.worker('probe')
    expect(await one.stop()).toBe(0)
    expect(isRunning(pid)).toBe(false)

    const models = { other: { '1.0': { workerWrapper: wrapper('daemon') } } }
    const two = await start({ worker_wrapper: wrapper('nobody'), models: JSON.stringify(models) })
    expect(await attempts(two)).toEqual({ ...NOTHING, 'connect to the management port': true })
  })
})

test('systemd-run starts a worker, or says why it cannot', async () => {
  const folder = tempDir()
  const handler = join(REPOSITORY, 'tests', 'support', 'handlers', 'probing', 'handler.ts')
  await createArchive({ modelName: 'probe', version: '1.0', handler, exportPath: folder })
  const config = { worker_wrapper: recipe('systemd-run') }
  const server = await startServer({ modelStore: folder, models: ['probe.mar'], config })
  const { state, lastExit } = await server.until(
    () => server.worker('probe'),
    (worker) => worker.state === 'ready' || worker.lastExit !== undefined,
  )
  if (state === 'ready') return
  expect(`${lastExit!.reason}\n${lastExit!.stderr.join('\n')}`).toMatch(
    /systemd-run ENOENT|exited with code \d+\n.*(systemd|bus|Interactive authentication)/s,
  )
})

test('workers have the environment of the server, and no folder of their own for temporary files', async () => {
  const folder = tempDir()
  const handler = join(REPOSITORY, 'tests', 'support', 'handlers', 'probing', 'handler.ts')
  await createArchive({ modelName: 'probe', version: '1.0', handler, exportPath: folder })
  const arrive = { HF_TOKEN: 'hf', OPENAI_API_KEY: 'sk', ENABLE_TORCH_PROFILER: 'true', TMPDIR: tempDir() }
  const env = { ...arrive, TS_KEYSTORE_PASS: 'hunter2', FORBIDDEN: 'x' }
  const config = { blacklist_env_vars: 'FORB.*' }
  const server = await startServer({ modelStore: folder, models: ['probe.mar'], env, config })
  await server.ready('probe')
  const { got } = await answerOf<{ got: Record<string, string> }>(server, 'probe', { attempt: 'env' })
  expect(got).toMatchObject(arrive)
  expect(got).not.toHaveProperty('TS_KEYSTORE_PASS')
  expect(got).not.toHaveProperty('FORBIDDEN')
})
