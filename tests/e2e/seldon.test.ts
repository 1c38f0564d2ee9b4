import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { status as Status } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import fc from 'fast-check'
import { parse } from 'yaml'
import { Gate } from '../support/gate.ts'
import { bodyOf, Seldon } from '../support/seldon.ts'
import { REPOSITORY, type Server, startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const TOLD = join(REPOSITORY, 'tests', 'support', 'handlers', 'told', 'handler.ts')
const DEPLOY = join(REPOSITORY, 'deploy', 'seldon')
const MAX_MESSAGE = 1_048_576_000

/** The folder does not exist: a fresh volume, and the server starts first. */
const store = join(tempDir(), 'agent', 'models')
let server: Server
let seldon: Seldon

beforeAll(async () => {
  server = await startSeldonServer(store)
  seldon = new Seldon(server.ports, 10)
})

afterAll(() => {
  seldon.close()
})

interface ServerManifest {
  spec: { podSpec: { containers: { args: string[]; env: { name: string; value: string }[] }[] } }
}

/**
 * As deploy/seldon/server.yaml starts it in the image, with the variables of Seldon's ServerConfig `mlserver`
 * (operator/config/serverconfigs/mlserver.yaml).
 */
function startSeldonServer(models: string, own: Record<string, string> = {}): Promise<Server> {
  const { spec } = parse(readFileSync(join(DEPLOY, 'server.yaml'), 'utf8')) as ServerManifest
  const { args, env } = spec.podSpec.containers[0]!
  return startServer({
    modelStore: 'by variable',
    snapshots: 'without a file',
    flags: ['--ncs', ...args],
    env: {
      ...Object.fromEntries(env.map(({ name, value }) => [name, value])),
      MLSERVER_HTTP_PORT: '0',
      MLSERVER_GRPC_PORT: '0',
      MLSERVER_METRICS_PORT: '0',
      MLSERVER_MODELS_DIR: models,
      MLSERVER_PARALLEL_WORKERS: '1',
      MLSERVER_LOAD_MODELS_AT_STARTUP: 'false',
      MLSERVER_GRPC_MAX_MESSAGE_LENGTH: String(MAX_MESSAGE),
      MLSERVER_DEBUG: 'false',
      // Other tests run beside this one.
      TS_MANAGEMENT_ADDRESS: 'http://127.0.0.1:0',
      TS_GRPC_INFERENCE_PORT: '0',
      TS_GRPC_MANAGEMENT_PORT: '0',
      ...own,
    },
  })
}

/** What the agent leaves in the volume; `code` is the handler's module. */
function place(
  name: string,
  config: object = {},
  code = `export { default as Told } from '${TOLD}'\n`,
): string {
  const folder = join(store, name)
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'model-settings.json'),
    JSON.stringify({ name, implementation: 'handler.ts:Told', parameters: { version: '1' } }),
  )
  writeFileSync(join(folder, 'model-config.yaml'), JSON.stringify(config))
  writeFileSync(join(folder, 'handler.ts'), code)
  return folder
}

async function loaded(name: string, config?: object, code?: string): Promise<string> {
  const folder = place(name, config, code)
  expect(await seldon.load(name)).toBe(Status.OK)
  return folder
}

const told = (what: object): string => JSON.stringify(what)

/** Starts of workers of a model, ever. */
async function workerIds(name: string): Promise<string[]> {
  return (await server.describe(name)).flatMap(({ workers }) => workers.map(({ id, pid }) => `${id} ${pid}`))
}

test('a fresh volume: the server makes the folder and says so', () => {
  expect(existsSync(store)).toBe(true)
  expect(server.output.filter((line) => line.includes('which did not exist'))).toHaveLength(1)
})

describe('loading', () => {
  test('the agent finds the server alive, and a model READY when its load is answered', async () => {
    expect(await seldon.isLive()).toBe(true)
    await loaded('first_1')
    expect(await seldon.state('first_1')).toBe('READY')
    expect(await seldon.infer('first_1', told({}))).toMatchObject({ status: Status.OK, text: 'done' })
  })

  test('a model that is READY and has not changed is not loaded again', async () => {
    const folder = await loaded('same_1')
    const before = await workerIds('same_1')
    for (let count = 0; count < 3; count += 1) expect(await seldon.load('same_1')).toBe(Status.OK)
    expect(await workerIds('same_1')).toEqual(before)
    writeFileSync(join(folder, 'handler.ts'), `export { default as Told } from '${TOLD}' // changed\n`)
    expect(await seldon.load('same_1')).toBe(Status.OK)
    expect(await workerIds('same_1')).not.toEqual(before)
  })

  test('a change that keeps size and time is seen', async () => {
    const folder = await loaded('kept_1', {}, `export class Told { handle = () => ['a'] }\n`)
    const path = join(folder, 'handler.ts')
    utimesSync(path, 1_700_000_000, 1_700_000_000)
    expect(await seldon.load('kept_1')).toBe(Status.OK)
    writeFileSync(path, readFileSync(path, 'utf8').replace("'a'", "'b'"))
    utimesSync(path, 1_700_000_000, 1_700_000_000)
    expect(await seldon.load('kept_1')).toBe(Status.OK)
    expect((await seldon.infer('kept_1', '')).text).toBe('b')
  })

  test('loads that come together are one', async () => {
    place('together_1')
    const loads = Array.from({ length: 30 }, () => seldon.load('together_1'))
    expect(new Set(await Promise.all(loads))).toEqual(new Set([Status.OK]))
    expect(await server.lines('Model together_1, version 1: registered')).toHaveLength(1)
  })

  test('a batch of large requests loads: its frame is not their product', async () => {
    await loaded('batched_1', { batchSize: 100, maxBatchDelay: 1 })
    expect(await seldon.infer('batched_1', told({}))).toMatchObject({ status: Status.OK, text: 'done' })
  })

  test('a response above the default limit passes: the variable is for both directions', async () => {
    await loaded('large_1')
    const { status, text } = await seldon.post('large_1', bodyOf(told({ bytes: 8_000_000 })))
    expect([status, text.length > 8_000_000]).toEqual([200, true])
  })

  test('implementation names a class that is the default export', async () => {
    await loaded('named_1', {}, `export default class Told { handle() { return ['by default'] } }\n`)
    expect((await seldon.infer('named_1', '')).text).toBe('by default')
  })

  test('an implementation that is not there is an error with what the module exports', async () => {
    place('unnamed_1', {}, 'export class Other { handle() { return [] } }\nexport default class Words {}\n')
    expect(await seldon.load('unnamed_1')).not.toBe(Status.OK)
    await server.lines('called "Told"; it exports Other, default (Words)')
  })
})

describe('a handler of texts', () => {
  const WORDS = `export default class Told {
    handle(requests) { return requests.map((request) => String(request.data ?? request.body).replaceAll(' ', '')) }
  }\n`

  test('gets the tensor, and answers with a tensor', async () => {
    await loaded('words_1', {}, WORDS)
    const { text } = await seldon.post('words_1', bodyOf('one two'))
    expect(JSON.parse(text)).toMatchObject({ outputs: [{ name: 'output', data: ['onetwo'] }] })
  })

  test('that makes a text of a JSON body answers with the JSON', async () => {
    await loaded('json_1', {}, WORDS)
    const url = `http://127.0.0.1:${server.ports.inference}/predictions/json_1`
    const headers = { 'content-type': 'application/json' }
    const response = await fetch(url, { method: 'POST', headers, body: '{"a":{"b":[1]}}' })
    expect(await response.text()).toBe('{"a":{"b":[1]}}')
  })
})

/** What a request asks for, and what it may cost over gRPC and over REST: the table of docs/seldon.md. */
interface Case {
  what: object
  grpc: [status: Status, attempts: number]
  rest: [status: number, attempts: number]
}

const CASES: Case[] = [
  { what: {}, grpc: [Status.OK, 1], rest: [200, 1] },
  { what: { status: 400 }, grpc: [Status.INVALID_ARGUMENT, 1], rest: [422, 1] },
  { what: { status: 404 }, grpc: [Status.INVALID_ARGUMENT, 1], rest: [422, 1] },
  { what: { status: 409 }, grpc: [Status.ABORTED, 1], rest: [409, 1] },
  { what: { status: 413 }, grpc: [Status.INVALID_ARGUMENT, 1], rest: [413, 1] },
  { what: { status: 429 }, grpc: [Status.RESOURCE_EXHAUSTED, 5], rest: [429, 1] },
  { what: { status: 500 }, grpc: [Status.INTERNAL, 1], rest: [500, 1] },
  { what: { status: 503 }, grpc: [Status.RESOURCE_EXHAUSTED, 5], rest: [503, 6] },
  { what: { status: 504 }, grpc: [Status.DEADLINE_EXCEEDED, 1], rest: [504, 1] },
  { what: { die: true }, grpc: [Status.INTERNAL, 1], rest: [500, 1] },
]

describe('requests through agent and Envoy', () => {
  test('in any order and mix cost what the table says, and load nothing', async () => {
    await loaded('mixed_1', { asyncCommunication: true, maxConcurrency: 4 })
    const before = seldon.reloads
    let died = false
    const asked = fc.record({ one: fc.constantFrom(...CASES), isGrpc: fc.boolean() })
    await fc.assert(
      fc.asyncProperty(fc.array(asked, { minLength: 1, maxLength: 5 }), async (batch) => {
        // One after the other: a worker that dies takes others with it. One that has answered nothing since
        // its start waits before it starts again.
        for (const { one, isGrpc } of batch) {
          const dies = 'die' in one.what
          if (dies && died) continue
          died = dies
          const text = told(one.what)
          const ended = isGrpc
            ? await seldon.infer('mixed_1', text)
            : await seldon.post('mixed_1', bodyOf(text))
          expect([one.what, ended.status, ended.attempts]).toEqual([
            one.what,
            ...(isGrpc ? one.grpc : one.rest),
          ])
        }
      }),
      { numRuns: 12, endOnFailure: true },
    )
    expect(seldon.reloads).toBe(before)
  })

  test('a body that is no JSON is 422, and loads nothing', async () => {
    await loaded('parsed_1')
    expect(await seldon.post('parsed_1', '{"inputs":[')).toMatchObject({ status: 422, attempts: 1, loads: 0 })
  })

  test('a model that the server does not have yet is loaded by the first request', async () => {
    place('lazy_1')
    const ended = await seldon.infer('lazy_1', told({}))
    expect(ended).toMatchObject({ status: Status.OK, text: 'done', attempts: 2, loads: 1 })
    const gone = await seldon.post('nowhere_1', bodyOf('{}'))
    expect(gone).toMatchObject({ status: 404, attempts: 2, loads: 1 })
  })

  test('a request whose worker died is repeated where the model says that this does no harm', async () => {
    await loaded('again_1', { idempotent: true })
    const ended = await seldon.post('again_1', bodyOf(told({ die: true })))
    // After three workers that died without an answer the model says that it cannot serve.
    expect(ended).toMatchObject({ status: 503, attempts: 4, loads: 0 })
  })

  test('600 calls at once into a short queue are all answered, and load nothing', async () => {
    await loaded('busy_1', { jobQueueSize: 20 })
    const workers = await workerIds('busy_1')
    const before = seldon.reloads
    const ended = await Promise.all(Array.from({ length: 600 }, () => seldon.infer('busy_1', told({}))))
    const statuses = new Set(ended.map(({ status }) => status))
    const answers: number[] = [Status.OK, Status.RESOURCE_EXHAUSTED]
    expect([...statuses].filter((code) => !answers.includes(code))).toEqual([])
    expect([seldon.reloads, await workerIds('busy_1')]).toEqual([before, workers])
  })
})

describe('a request that runs', () => {
  test('when its model is replaced: the load is answered, and it ends whole', async () => {
    const gate = new Gate()
    const folder = await loaded('replaced_1')
    const running = seldon.infer('replaced_1', told({ gate: gate.path, bytes: 3 }))
    await begun('replaced_1')
    writeFileSync(join(folder, 'handler.ts'), `export class Told { handle() { return ['new'] } }\n`)
    expect(await seldon.load('replaced_1')).toBe(Status.OK)
    expect((await seldon.infer('replaced_1', '')).text).toBe('new')
    gate.open()
    expect(await running).toMatchObject({ status: Status.OK, text: 'xxx', attempts: 1 })
  })

  test('when its model is unloaded: the unload is answered, new requests find none, and it ends whole', async () => {
    const gate = new Gate()
    const folder = await loaded('unloaded_1')
    const running = seldon.infer('unloaded_1', told({ gate: gate.path, bytes: 3 }))
    const queued = seldon.infer('unloaded_1', told({ bytes: 2 }))
    await begun('unloaded_1')
    expect(await seldon.unload('unloaded_1')).toBe(Status.OK)
    rmSync(folder, { recursive: true })
    expect(await seldon.infer('unloaded_1', '')).toMatchObject({ status: Status.NOT_FOUND, loads: 1 })
    gate.open()
    expect([(await running).text, (await queued).text]).toEqual(['xxx', 'xx'])
  })
})

/** A worker of the model has the request. */
async function begun(name: string): Promise<void> {
  await server.until(
    () => server.describe(name),
    ([version]) => version!.workers[0]!.inFlight === 1,
  )
}
