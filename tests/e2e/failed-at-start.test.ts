import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { createArchive } from '../../model-archiver/pack.ts'
import { call, healthClient, inferenceV2Client, type Message } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const HANDLER = 'export const handle = (requests) => requests.map(() => "served")\n'

async function archive(store: string, modelName: string, version: string, text = HANDLER): Promise<string> {
  const handler = join(tempDir(), 'handler.mjs')
  writeFileSync(handler, text)
  await createArchive({ modelName, version, handler, exportPath: store })
  return join(store, `${modelName}.mar`)
}

function folder(store: string, name: string, files: Record<string, string>): void {
  mkdirSync(join(store, name))
  for (const [file, text] of Object.entries(files)) writeFileSync(join(store, name, file), text)
}

/** Not ready for V2 and for gRPC, and yet live and healthy; or all of them. */
async function readiness(server: Server): Promise<Record<string, unknown>> {
  const { inference, grpcInference, openInference } = server.ports
  const get = async (path: string): Promise<number> =>
    (await rawRequest(inference, path, { method: 'GET' })).status
  const health = healthClient(grpcInference)
  const v2 = inferenceV2Client(openInference, 'mlserver')
  const { status } = await call<Message, Message>(health, health['Check']!, {})
  const { ready } = await call<Message, Message>(v2, v2['ServerReady']!, {})
  health.close()
  v2.close()
  return { ping: await get('/ping'), v2: await get('/v2/health/ready'), grpc: status, grpcV2: ready }
}

const NOT_READY = { ping: 200, v2: 503, grpc: 2, grpcV2: false }
const READY = { ping: 200, v2: 200, grpc: 1, grpcV2: true }

async function index(server: Server): Promise<Record<string, string>> {
  const { body } = await rawRequest(server.ports.inference, '/v2/repository/index', { body: '{}' })
  const entries = JSON.parse(body) as { name: string; version: string; state: string; reason: string }[]
  return Object.fromEntries(
    entries.map(({ name, version, state, reason }) => [
      `${name} ${version}`.trim(),
      `${state} ${reason}`.trim(),
    ]),
  )
}

const becomes = (server: Server, expected: Record<string, unknown>): Promise<unknown> =>
  server.until(
    () => readiness(server),
    (found) => JSON.stringify(found) === JSON.stringify(expected),
  )

describe('a model of load_models=all that cannot be loaded', () => {
  const store = tempDir()
  let server: Server
  let whole: Buffer

  beforeAll(async () => {
    await archive(store, 'good', '1.0')
    const cut = await archive(store, 'cut', '1.0')
    whole = readFileSync(cut)
    writeFileSync(cut, whole.subarray(0, whole.length / 2))
    folder(store, 'syntax', { 'handler.mjs': 'export const handle = (requests) => [' })
    folder(store, 'settings', { 'model-settings.json': '{"name":', 'handler.mjs': HANDLER })
    // The default version of `two` loads, the other fails in its worker.
    await archive(store, 'two', '1.0')
    folder(store, 'two_later', {
      'handler.mjs': 'throw new Error("planted")\n',
      'model-settings.json': '{"name": "two", "parameters": {"version": "2.0"}}',
    })
    server = await startServer({
      modelStore: store,
      models: ['all'],
      config: { open_inference_grpc_port: 0 },
    })
    await server.until(
      () => index(server),
      (found) =>
        found['good 1.0'] === 'READY' && found['two 2.0'] !== 'LOADING' && found['two 1.0'] === 'READY',
    )
  })

  test('keeps the server from being ready, whether it failed before or after its worker started; /ping is as in TorchServe', async () => {
    expect(await readiness(server)).toEqual(NOT_READY)
    expect((await rawRequest(server.ports.inference, '/predictions/good')).body).toBe('served')
  })

  test('is in the index with the class of its cause', async () => {
    expect(await index(server)).toEqual({
      'good 1.0': 'READY',
      'cut 1.0': 'UNAVAILABLE not loaded: its archive was refused',
      'syntax 1.0': 'UNAVAILABLE not loaded: it has no valid handler',
      'settings 1.0': 'UNAVAILABLE not loaded: its settings are not valid',
      'two 1.0': 'READY',
      'two 2.0': 'LOADING the handler threw while it loaded',
    })
  })

  test('answers 503 with an id under which the log has the cause, and is not ready by itself', async () => {
    const { inference } = server.ports
    const { status, body } = await rawRequest(inference, '/predictions/cut')
    expect(status).toBe(503)
    const [, id] = /"cut\\?" cannot serve: its archive was refused\..* under the id ([0-9a-f]{12})/.exec(
      body,
    )!
    expect(await server.lines(`(id ${id})`)).toEqual([
      expect.stringMatching(/Failed to load model: cut\.mar: .+/),
    ])
    expect((await rawRequest(inference, '/v2/models/cut/ready', { method: 'GET' })).status).toBe(503)
    expect((await rawRequest(inference, '/v2/models/none/ready', { method: 'GET' })).status).toBe(404)
  })

  test('is loaded when its files are mended, and given up when it is unregistered', async () => {
    writeFileSync(join(store, 'cut.mar'), whole)
    await server.until(
      () => index(server),
      (found) => found['cut 1.0'] === 'READY',
    )
    expect((await rawRequest(server.ports.inference, '/predictions/cut')).body).toBe('served')
    expect((await server.manage('DELETE', '/models/syntax')).status).toBe(200)
    expect((await rawRequest(server.ports.inference, '/v2/repository/models/settings/unload')).status).toBe(
      200,
    )
    expect(await readiness(server)).toEqual(NOT_READY)
    expect((await server.manage('DELETE', '/models/two/2.0')).status).toBe(200)
    await becomes(server, READY)
    expect((await rawRequest(server.ports.inference, '/predictions/syntax')).status).toBe(404)
  })

  test('a register call that fails leaves nothing, and the server ready', async () => {
    expect((await server.manage('POST', '/models?url=syntax&initial_workers=1')).status).toBe(400)
    const bad = await archive(store, 'bad', '1.0', 'throw new Error("planted")\n')
    const { status } = await server.manage('POST', `/models?url=bad.mar&initial_workers=1&synchronous=true`)
    expect([bad.endsWith('bad.mar'), status]).toEqual([true, 500])
    expect((await rawRequest(server.ports.inference, '/predictions/bad')).status).toBe(404)
    expect(await readiness(server)).toEqual(READY)
  })
})

test('so it is with a list, whose models that are there are served', async () => {
  const store = tempDir()
  await archive(store, 'good', '1.0')
  writeFileSync(join(store, 'broken.mar'), 'no archive')
  const models = ['other=broken.mar', 'good.mar']
  const server = await startServer({ modelStore: store, models, config: { open_inference_grpc_port: 0 } })
  await server.ready('good')
  expect(await readiness(server)).toEqual(NOT_READY)
  expect((await index(server))['other']).toBe('UNAVAILABLE not loaded: its archive was refused')
  expect((await server.manage('GET', '/models/other')).status).toBe(503)
  await server.stop()
})

test('so it is with a snapshot', async () => {
  const store = tempDir()
  await archive(store, 'good', '1.0')
  const cut = await archive(store, 'cut', '1.0')
  const config = { open_inference_grpc_port: 0 }
  const first = await startServer({ modelStore: store, snapshots: true, config })
  for (const name of ['good', 'cut']) await first.manage('POST', `/models?url=${name}.mar&initial_workers=1`)
  await first.stop()
  writeFileSync(cut, 'no archive')
  const second = await startServer({ modelStore: store, snapshots: true, config, folder: first.folder })
  await second.ready('good')
  expect(await readiness(second)).toEqual(NOT_READY)
  expect(await index(second)).toMatchObject({ 'cut 1.0': 'UNAVAILABLE not loaded: its archive was refused' })
  expect((await second.manage('DELETE', '/models/cut/1.0')).status).toBe(200)
  await becomes(second, READY)
  await second.stop()
})

test('a start in the same folder tries a broken archive of the configuration again, until it is mended', async () => {
  const store = tempDir()
  await archive(store, 'good', '1.0')
  const cut = await archive(store, 'cut', '1.0')
  const whole = readFileSync(cut)
  writeFileSync(cut, 'no archive')
  const options = {
    ...{ modelStore: store, snapshots: true },
    config: { open_inference_grpc_port: 0, load_models: 'good.mar,named=cut.mar' },
  }
  const first = await startServer(options)
  await first.ready('good')
  await first.stop()

  const second = await startServer({ ...options, folder: first.folder })
  await second.ready('good')
  expect(second.output).toContainEqual(expect.stringContaining('Models come from the snapshot'))
  expect(await readiness(second)).toEqual(NOT_READY)
  expect(await index(second)).toMatchObject({ named: 'UNAVAILABLE not loaded: its archive was refused' })
  expect(await second.lines('Failed to load model: cut.mar: ')).toEqual([
    expect.stringMatching(/\(id [0-9a-f]{12}\); the server will try again$/),
  ])
  const { json } = await second.manage('GET', '/models')
  expect(json.models!.map(({ modelName }) => modelName)).toEqual(['good', 'named'])
  const health = await rawRequest(second.ports.inference, '/health', { method: 'GET' })
  expect([health.status, health.body]).toEqual([503, expect.stringContaining('could not be loaded')])
  writeFileSync(cut, whole)
  await becomes(second, READY)
  expect((await rawRequest(second.ports.inference, '/predictions/named')).body).toBe('served')
  await second.stop()

  const third = await startServer({ ...options, folder: first.folder })
  await third.ready('named')
  await third.stop()
})

test('a failed model that is unregistered is not in the next start', async () => {
  const store = tempDir()
  writeFileSync(join(store, 'broken.mar'), 'no archive')
  const first = await startServer({ modelStore: store, snapshots: true, models: ['broken.mar'] })
  expect((await first.manage('GET', '/models/broken')).status).toBe(503)
  expect((await first.manage('DELETE', '/models/broken')).status).toBe(200)
  await first.stop()
  const second = await startServer({ modelStore: store, snapshots: true, folder: first.folder })
  expect((await second.manage('GET', '/models/broken')).status).toBe(404)
  await second.stop()
})

test('a broken archive that was taken out of the store of load_models=all is forgotten', async () => {
  const store = tempDir()
  await archive(store, 'good', '1.0')
  writeFileSync(join(store, 'broken.mar'), 'no archive')
  const options = {
    modelStore: store,
    snapshots: true,
    config: { open_inference_grpc_port: 0, load_models: 'all' },
  }
  const first = await startServer(options)
  await first.lines('Failed to load model: broken.mar: ')
  await first.ready('good')
  await first.stop()
  rmSync(join(store, 'broken.mar'))
  const second = await startServer({ ...options, folder: first.folder })
  await second.lines('broken.mar no longer exists')
  await becomes(second, READY)
  await second.stop()
})

test('the address of a failed model is shown without its password', async () => {
  const url = 'http://user:hidden@127.0.0.1:1/gone.mar'
  const server = await startServer({ models: [`gone=${url}`], config: { allow_private_urls: true } })
  await server.lines('Failed to load model: ')
  const { json } = await server.manage('GET', '/models')
  expect(json.models).toEqual([{ modelName: 'gone', modelUrl: 'http://***@127.0.0.1:1/gone.mar' }])
  expect(server.output.join('\n')).not.toContain('hidden')
  await server.stop()
})
