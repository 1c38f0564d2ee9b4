import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { once } from 'node:events'
import { join } from 'node:path'
import { expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import type { ModelSnapshot } from '../../frontend/config/model-snapshot.ts'
import { parseProperties } from '../../frontend/config/properties.ts'
import { rawRequest } from '../support/raw-http.ts'
import { CLI, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { spawn } from '../support/tools.ts'

const FLAGS = ['--disable-token-auth', '--enable-model-api']

/** A store with two versions of `word`, each of which answers with its number. */
async function makeStore(): Promise<string> {
  const store = tempDir()
  for (const version of ['1', '2']) {
    const handler = join(tempDir(), 'handler.mjs')
    writeFileSync(handler, `export function handle(requests) { return requests.map(() => 'v${version}') }\n`)
    const name = `word_v${version}`
    await createArchive({ modelName: name, version, handler, exportPath: store })
  }
  return store
}

/** A server that keeps snapshots: in `folder` if given, which an earlier server left. */
function start(modelStore: string, folder?: string, more: string[] = []): Promise<Server> {
  return startServer({ modelStore, snapshots: true, folder, flags: [...FLAGS, ...more] })
}

function snapshots(server: Server): string[] {
  return readdirSync(join(server.folder, 'logs', 'config')).sort()
}

function models(server: Server, file: string): ModelSnapshot['models'] {
  const path = join(server.folder, 'logs', 'config', file)
  const entries = parseProperties(readFileSync(path, 'utf8'), path, undefined)
  const text = entries.find(({ name }) => name === 'model_snapshot')!.text
  return (JSON.parse(text) as ModelSnapshot).models
}

/** The one line that says where the models come from. */
function source(server: Server): string {
  const lines = server.output.filter((line) => /^(Models come from|No models to load)/.test(line))
  expect(lines).toHaveLength(1)
  return lines[0]!
}

/** Resolves when the server has logged a line that matches: the log is later than the start's last line. */
async function logged(server: Server, line: RegExp): Promise<void> {
  await server.until(
    async () => server.output,
    (output) => output.some((each) => line.test(each)),
  )
}

async function loaded(server: Server): Promise<string[]> {
  const { json } = await server.manage('GET', '/models')
  return json.models!.map(({ modelName }) => modelName)
}

test('a server that starts again has the models, versions, defaults, workers and batch settings that it had', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word&initial_workers=1&batch_size=3')
  await first.manage('POST', '/models?url=word_v2.mar&model_name=word&initial_workers=0&max_batch_delay=7')
  await first.manage('PUT', '/models/word/2/set-default')
  await first.manage('PUT', '/models/word/2?min_worker=1&max_worker=2&synchronous=true')
  const before = await first.describe('word', '/all')
  expect(await first.stop()).toBe(0)
  const kinds = snapshots(first).map((name) => name.replace(/^\d{17}-/, ''))
  expect(kinds).toEqual(['startup.cfg', ...Array<string>(4).fill('snapshot.cfg'), 'shutdown.cfg'])

  const second = await start(store, first.folder)
  expect(source(second)).toMatch(
    /^Models come from the snapshot logs\/config\/\d{17}-shutdown\.cfg; start with --ncs to ignore it$/,
  )
  await second.ready('word')
  const [now] = await second.describe('word')
  expect([now!.modelVersion, now!.loadedAtStartup]).toEqual(['2', false])
  const facts = (versions: typeof before): unknown[] =>
    versions
      .map(({ modelVersion, modelUrl, minWorkers, maxWorkers, batchSize, maxBatchDelay, runtime }) => ({
        ...{ modelVersion, modelUrl, minWorkers, maxWorkers, batchSize, maxBatchDelay, runtime },
      }))
      .sort((a, b) => (a.modelVersion < b.modelVersion ? -1 : 1))
  expect(facts(await second.describe('word', '/all'))).toEqual(facts(before))
  const predict = async (path: string): Promise<string> =>
    (await rawRequest(second.ports.inference, `/predictions/${path}`)).body
  expect(await predict('word')).toBe('v2')
  expect(await predict('word/1')).toBe('v1')
  await second.stop()
})

test('flags that make a server less safe are not kept, what the file said is', async () => {
  const server = await startServer({ snapshots: true, config: { job_queue_size: 7 }, flags: FLAGS })
  const file = snapshots(server)[0]!
  const text = readFileSync(join(server.folder, 'logs', 'config', file), 'utf8')
  expect(text).toContain('job_queue_size=7\n')
  expect(text).toContain(`model_store=${join(server.folder, 'store')}\n`)
  expect(text).not.toMatch(/disable_token|enable_model_api/)
  await server.stop()
})

test('a model whose archive is gone keeps the server from starting', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop()
  rmSync(join(store, 'word_v1.mar'))
  await expect(start(store, first.folder)).rejects.toThrow(
    /Model archive file for model :word, version :1 not found in model store \(model_snapshot at .*logs\/config\/.*-shutdown\.cfg:\d+; start with --ncs to ignore it\)/,
  )
})

test('--ncs neither reads nor writes snapshots', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop()
  const before = snapshots(first)
  const second = await start(store, first.folder, ['--ncs'])
  expect((await second.manage('GET', '/models')).json.models).toEqual([])
  await second.stop()
  expect(snapshots(second)).toEqual(before)
})

test('a snapshot may be named as the configuration, and a model that is unregistered is not in the next one', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  const [, named] = snapshots(first)
  await first.manage('DELETE', '/models/word')
  await first.stop()
  expect(models(first, snapshots(first).at(-1)!)).toEqual({})
  const second = await start(store, first.folder, ['--ts-config', join('logs', 'config', named!)])
  expect((await second.describe('word'))[0]!.modelVersion).toBe('1')
  await second.stop()
})

test('a server that is killed leaves the snapshot of its last change', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop('SIGKILL')
  expect(Object.keys(models(first, snapshots(first).at(-1)!))).toEqual(['word'])
})

test('--models says which models are loaded, over any snapshot', async () => {
  const store = await makeStore()
  const first = await start(store)
  expect(source(first)).toBe(
    'No models to load: no --models, no load_models, and no snapshot was read (--ncs and --ts-config leave it out)',
  )
  await first.manage('POST', '/models?url=word_v2.mar')
  await first.stop()
  const second = await start(store, first.folder, ['--models', 'word_v1.mar'])
  expect(source(second)).toMatch(
    /^Models come from --models, not from the snapshot logs\/config\/\d{17}-shutdown\.cfg$/,
  )
  expect(await loaded(second)).toEqual(['word_v1'])
  await second.stop()
  const third = await start(store, first.folder)
  expect(await loaded(third)).toEqual(['word_v1'])
  await third.stop()
})

test('the snapshot comes before load_models, until load_models is changed', async () => {
  const modelStore = await makeStore()
  const load = (models: string) => ({ modelStore, snapshots: true, config: { load_models: models } })
  const first = await startServer(load('word_v1.mar'))
  const { folder } = first
  await first.manage('POST', '/models?url=word_v2.mar')
  await first.stop()
  const same = await startServer({ ...load('word_v1.mar'), folder })
  expect(source(same)).toMatch(
    /-shutdown\.cfg, not from load_models \(config\.properties:\d+\); start with --ncs to ignore it$/,
  )
  expect(await loaded(same)).toEqual(['word_v1', 'word_v2'])
  await same.stop()
  const changed = await startServer({ ...load('word_v2.mar'), folder })
  expect(source(changed)).toMatch(
    /^Models come from load_models \(config\.properties:\d+\), which has changed since, not from the snapshot /,
  )
  expect(await loaded(changed)).toEqual(['word_v2'])
  await changed.stop()
})

test('settings come from config.properties, and a change of one is told', async () => {
  const modelStore = await makeStore()
  const first = await startServer({ modelStore, snapshots: true, config: { job_queue_size: 7 } })
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop()
  const config = { job_queue_size: 9 }
  const second = await startServer({ modelStore, snapshots: true, config, folder: first.folder })
  expect((await second.describe('word'))[0]!.jobQueueStatus.remainingCapacity).toBe(9)
  await logged(second, /Changed since the snapshot \S+-shutdown\.cfg: job_queue_size=9 \(was 7\)$/m)
  await second.stop()
})

test('without a configuration file the settings of the snapshot count, but none that opens the server', async () => {
  const modelStore = await makeStore()
  const config = { job_queue_size: 7, disable_token_authorization: true, enable_model_api: true }
  const first = await startServer({ modelStore, snapshots: true, config, flags: [] })
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop()
  const { folder } = first
  const second = await startServer({ modelStore, snapshots: 'without a file', folder, flags: [] })
  await logged(
    second,
    /No config\.properties and no --ts-config, so from the snapshot \S+: .*job_queue_size=7.*; start with --ncs/,
  )
  await logged(second, /disable_token_authorization=true, enable_model_api=true of the snapshot \S+ has no/)
  expect((await rawRequest(second.ports.management, '/models/word')).status).toBe(400)
  await second.stop()
  const flags = ['--disable-token-auth']
  const third = await startServer({ modelStore, folder, snapshots: 'without a file', flags })
  expect((await third.describe('word'))[0]!.jobQueueStatus.remainingCapacity).toBe(7)
  expect((await third.manage('DELETE', '/models/word')).status).toBe(405)
  await third.stop()
})

test('a model that is not in another model store is an error that names both', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar&model_name=word')
  await first.stop()
  await expect(start(tempDir(), first.folder)).rejects.toThrow(
    `, which was written with the model store ${store}; start with --ncs to ignore it)`,
  )
})

test('a model that cannot be loaded is logged with the snapshot and --ncs', async () => {
  const store = await makeStore()
  const first = await start(store)
  await first.manage('POST', '/models?url=word_v1.mar')
  await first.manage('POST', '/models?url=word_v2.mar')
  await first.stop()
  writeFileSync(join(store, 'word_v1.mar'), 'junk')
  const second = await start(store, first.folder)
  expect((await second.manage('GET', '/models/word_v1')).status).toBe(503)
  await logged(
    second,
    /Error while registering model word_v1\. Details: .* \(model_snapshot at \S+-shutdown\.cfg:\d+; start with --ncs to ignore it\)/,
  )
  await second.stop()
})

test('a model that could not be loaded stays in the snapshots, is tried again, and ends with DELETE', async () => {
  const store = await makeStore()
  const first = await start(store)
  for (const name of ['word_v1', 'word_v2']) await first.manage('POST', `/models?url=${name}.mar`)
  const state = models(first, snapshots(first).at(-1)!)['word_v1']
  await first.stop()
  const archive = join(store, 'word_v1.mar')
  const bytes = readFileSync(archive)
  writeFileSync(archive, 'junk')
  const second = await start(store, first.folder)
  await second.manage('PUT', '/models/word_v2?min_worker=1&synchronous=true')
  await second.stop()
  expect(models(second, snapshots(second).at(-1)!)['word_v1']).toEqual(state)

  const third = await start(store, first.folder)
  await logged(third, /Error while registering model word_v1/)
  writeFileSync(archive, bytes)
  await third.until(
    () => third.manage('GET', '/models/word_v1'),
    ({ status }) => status === 200,
  )
  await third.stop()

  writeFileSync(archive, 'junk')
  const fourth = await start(store, first.folder)
  expect((await fourth.manage('DELETE', '/models/word_v1')).status).toBe(200)
  await fourth.stop()
  expect(Object.keys(models(fourth, snapshots(fourth).at(-1)!))).toEqual(['word_v2'])
})

test('a broken snapshot is an error that names it', async () => {
  const server = await start(await makeStore())
  await server.stop()
  const newest = snapshots(server).at(-1)!
  writeFileSync(join(server.folder, 'logs', 'config', newest), 'model_snapshot={"models":\n')
  const args = ['--start', '--foreground', '--model-store', 'store']
  const child = spawn(process.execPath, [CLI, ...args], {
    cwd: server.folder,
    env: { ...process.env, NODE_OPTIONS: '', TEMP: join(server.folder, 'tmp') },
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let errors = ''
  child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()))
  const [status] = (await once(child, 'close')) as [number]
  expect(status).toBe(1)
  expect(errors).toMatch(
    new RegExp(`${newest}:1: model_snapshot must be .*; start with --ncs to ignore it\n`),
  )
})
