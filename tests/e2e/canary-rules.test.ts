import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { beforeAll, beforeEach, describe, expect, test } from '@jest/globals'
import { call, inferenceClient, managementClient } from '../support/grpc-clients.ts'
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { register, startVersions, traffic, writeVersion } from '../support/versions.ts'
import { tempDir } from '../support/temp.ts'

/** A request of the Open Inference Protocol. */
const V2 = { inputs: [{ name: 'text', shape: [1], datatype: 'BYTES', data: ['hi'] }] }

function predict(server: Server, body = '', headers: Record<string, string> = {}): Promise<RawResponse> {
  return rawRequest(server.ports.inference, '/predictions/m', {
    body,
    headers: { ...server.headers, ...headers },
  })
}

/** The bodies of requests, one after the other. */
async function bodies(count: number, ask: (index: number) => Promise<RawResponse>): Promise<string[]> {
  const all: string[] = []
  for (let index = 0; index < count; index += 1) all.push((await ask(index)).body)
  return all
}

function count(list: readonly string[], wanted = '2.0'): number {
  return list.filter((each) => each === wanted).length
}

function audit(server: Server): Record<string, unknown>[] {
  const text = readFileSync(join(server.folder, 'logs', 'audit_log.log'), 'utf8')
  return text
    .split('\n')
    .flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Record<string, unknown>]))
}

let server: Server

beforeAll(async () => {
  const config = { maxConcurrency: 4 }
  server = await startVersions({ '1.0': { config }, '2.0': { config } })
})

beforeEach(async () => {
  expect((await traffic(server, 'DELETE')).status).toBe(200)
})

describe('sticky by a header', () => {
  const asUser = (index: number): Promise<RawResponse> => predict(server, '', { 'X-User': `user-${index}` })
  const sticky = { header: 'x-user' }

  test('the same value gets the same version, and values share the versions by weight', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 1 }, sticky })
    const first = await bodies(100, asUser)
    expect(await bodies(100, asUser)).toEqual(first)
    expect(Math.abs(count(first) - 50)).toBeLessThan(25)
  })

  test('more weight for a version takes nobody away from it, and the same weights bring all back', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 80, '2.0': 20 }, sticky })
    const before = await bodies(60, asUser)
    await traffic(server, 'PUT', { weights: { '1.0': 60, '2.0': 40 }, sticky })
    const after = await bodies(60, asUser)
    expect(before.filter((version, index) => version === '2.0' && after[index] !== '2.0')).toEqual([])
    expect(count(after)).toBeGreaterThan(count(before))
    await traffic(server, 'PUT', { weights: { '1.0': 80, '2.0': 20 }, sticky })
    expect(await bodies(60, asUser)).toEqual(before)
  })

  test('over gRPC the metadata has the value, and gets the version that it gets over REST', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 1 }, sticky })
    const client = inferenceClient(server.ports.grpcInference)
    const overGrpc: string[] = []
    for (let index = 0; index < 20; index += 1) {
      const metadata = new Metadata()
      metadata.set('x-user', `user-${index}`)
      const message = { model_name: 'm', input: {} }
      overGrpc.push(String((await call(client, client.Predictions, message, metadata)).prediction))
    }
    client.close()
    expect(overGrpc).toEqual(await bodies(20, asUser))
  })

  test('requests without the header go in turn', async () => {
    await traffic(server, 'PUT', { weights: { '1.0': 1, '2.0': 1 }, sticky })
    expect(count(await bodies(10, () => predict(server)))).toBe(5)
    expect(count(await bodies(10, () => predict(server, '', { 'x-user': '' })))).toBe(5)
  })
})

describe('roll-back', () => {
  const rollback = { maxErrorPercent: 50, minRequests: 10, windowSeconds: 600 }
  const weights = { '1.0': 1, '2.0': 1 }

  interface Version {
    weight: number
    errors: number
    requests: number
    rolledBack?: { at: string; weight: number; reason: string }
  }

  async function versions(): Promise<[Version, Version]> {
    return (await traffic(server, 'GET')).json['versions'] as [Version, Version]
  }

  test('a version that begins to fail loses its weight: once, told in the log, the audit log, GET and metrics', async () => {
    await traffic(server, 'PUT', { weights, rollback })
    await bodies(10, () => predict(server))
    expect((await versions())[1]).toMatchObject({ weight: 1, requests: 5, errors: 0 })
    const answers: RawResponse[] = []
    for (let index = 0; index < 30; index += 1) answers.push(await predict(server, 'fail 2.0'))
    // Five were well: at six failures of eleven requests it is more than half.
    expect(answers.filter(({ status }) => status === 503)).toHaveLength(6)
    expect(answers.slice(-18).map(({ body }) => body)).toEqual(Array(18).fill('1.0'))
    const [first, second] = await versions()
    const reason = '6 of 11 requests failed within 600 s: 54.5 %, more than 50 %'
    expect(first).toMatchObject({ weight: 1, share: 1, errors: 0 })
    expect(second).toMatchObject({
      weight: 0,
      share: 0,
      requests: 11,
      errors: 6,
      rolledBack: { weight: 1, reason },
    })
    expect(Date.parse(second.rolledBack!.at)).toBeLessThanOrEqual(Date.now())
    const [described] = await server.describe('m', '/2.0')
    expect(described!.traffic).toMatchObject({ weight: 0, rolledBack: { reason } })
    const lines = await server.lines('is rolled back')
    expect(lines).toHaveLength(1)
    expect(lines[0]).toMatch(/WARN.*Model m: version 2\.0 is rolled back from the weight 1 to 0: 6 of 11/)
    await server.until(
      async () => audit(server).filter(({ operation }) => operation === 'roll back traffic'),
      (entries) =>
        entries.length === 1 && entries[0]!['detail'] === reason && entries[0]!['version'] === '2.0',
    )
    const metric = (name: string): Promise<number> => server.metric(name, { model_version: '2.0' })
    expect(await metric('torchserve_ts_traffic_rollbacks_total')).toBe(1)
    expect(await metric('torchserve_ts_traffic_share')).toBe(0)
  })

  test('setting the weights again begins anew', async () => {
    await traffic(server, 'PUT', { weights, rollback: { ...rollback, minRequests: 1, maxErrorPercent: 0 } })
    await bodies(2, () => predict(server, 'fail 2.0'))
    expect((await versions())[1]).toMatchObject({ weight: 0 })
    await traffic(server, 'PUT', { weights, rollback })
    const [, second] = await versions()
    expect(second).toEqual({ modelVersion: '2.0', weight: 1, share: 0.5, requests: 0, errors: 0 })
    expect(count(await bodies(4, () => predict(server)))).toBe(2)
  })

  test.each([
    ['the client’s own mistakes are none', 'refuse 2.0', 0],
    ['answers with a status of 500 or more are', 'status 2.0', 5],
  ])('what counts as an error: %s', async (_, body, errors) => {
    await traffic(server, 'PUT', { weights, rollback: { ...rollback, minRequests: 6 } })
    await bodies(10, () => predict(server, body))
    expect((await versions())[1]).toMatchObject({ requests: 5, errors })
  })

  test.each([
    ['V2 generate', '/v2/models/m/generate', { text_input: 'hi' }],
    ['V2 infer_stream', '/v2/models/m/infer_stream', V2],
    ['OpenAI embeddings', '/v1/embeddings', { model: 'm', input: 'hi' }],
  ])('an answer for which the API has no form is an error of its version: %s', async (_, path, body) => {
    const own = await startVersions(
      { '1.0': { exports: 'vector as handle' }, '2.0': { exports: 'odd as handle' } },
      { config: { open_inference_grpc_port: 0 } },
    )
    await traffic(own, 'PUT', { weights, rollback: { ...rollback, minRequests: 4 } })
    const ask = (): Promise<RawResponse> =>
      rawRequest(own.ports.inference, path, {
        body: JSON.stringify(body),
        headers: { 'content-type': 'application/json' },
      })
    const answers: RawResponse[] = []
    for (let index = 0; index < 12; index += 1) answers.push(await ask())
    const failed = answers.filter(({ status }) => status !== 200)
    expect(failed.map(({ status }) => status)).toEqual(Array(4).fill(500))
    const { json } = await traffic(own, 'GET')
    expect(json['versions']).toMatchObject([
      { weight: 1, requests: 8, errors: 0 },
      { weight: 0, requests: 4, errors: 4 },
    ])
    expect(await own.metric('torchserve_ts_traffic_errors_total', { model_version: '2.0' })).toBe(4)
    await own.stop()
  })

  test('the default version keeps its weight, whatever happens', async () => {
    await traffic(server, 'PUT', { weights, rollback: { ...rollback, minRequests: 1, maxErrorPercent: 0 } })
    await bodies(6, () => predict(server, 'fail 1.0'))
    expect(await versions()).toMatchObject([
      { weight: 1, errors: 3 },
      { weight: 1, errors: 0 },
    ])
  })

  test('where no other version has a weight, the default version takes over', async () => {
    await traffic(server, 'PUT', {
      weights: { '2.0': 7 },
      rollback: { ...rollback, minRequests: 1, maxErrorPercent: 0 },
    })
    expect(await bodies(3, () => predict(server, 'fail 2.0'))).toEqual([expect.any(String), '1.0', '1.0'])
    expect((await traffic(server, 'GET')).json['weights']).toEqual({ '2.0': 0 })
  })
})

test('without weights an OpenAI answer names no version, also where sequences choose it', async () => {
  const config = { sequenceBatching: true, maxNumSequence: 10 }
  const own = await startVersions({ '1.0': { config }, '2.0': { config } })
  const ask = (): Promise<RawResponse> =>
    rawRequest(own.ports.inference, '/v1/completions', {
      body: JSON.stringify({ model: 'm', prompt: 'hi' }),
      headers: { 'content-type': 'application/json', ts_request_sequence_id: 'a' },
    })
  const plain = await ask()
  expect([plain.status, plain.headers['x-model-version']]).toEqual([200, undefined])
  await traffic(own, 'PUT', { weights: { '2.0': 1 } })
  expect((await ask()).headers['x-model-version']).toBeDefined()
  await own.stop()
})

test('the span of a request tells the version that weights chose', async () => {
  const receiver = new OtlpReceiver()
  const own = await startVersions({ '1.0': {}, '2.0': {} }, { env: await receiver.start() })
  await traffic(own, 'PUT', { weights: { '2.0': 1 } })
  const id = 'f'.repeat(31) + '1'
  await predict(own, '', { traceparent: `00-${id}-b7ad6b7169203331-01` })
  const isServers = ({ kind, traceId }: ReceivedSpan): boolean => kind === 2 && traceId === id
  const spans = await receiver.trace(isServers)
  expect(spans.find(isServers)!.attributes['torchserve_ts.model.version']).toBe('2.0')
  await own.stop()
})

test('metrics count by version what weights have sent', async () => {
  const own = await startVersions({ '1.0': {}, '2.0': {} })
  const metric = (name: string, version: string): Promise<number> =>
    own.metric(`torchserve_ts_traffic_${name}`, { model_name: 'm', model_version: version })
  const page = async (): Promise<string> =>
    (await rawRequest(own.ports.metrics, '/metrics', { method: 'GET' })).body
  expect(await page()).not.toContain('torchserve_ts_traffic_requests_total{')
  await traffic(own, 'PUT', { weights: { '1.0': 3, '2.0': 1 } })
  await bodies(8, () => predict(own, 'fail 2.0'))
  expect([await metric('requests_total', '1.0'), await metric('requests_total', '2.0')]).toEqual([6, 2])
  expect([await metric('errors_total', '1.0'), await metric('errors_total', '2.0')]).toEqual([0, 2])
  expect([await metric('share', '1.0'), await metric('share', '2.0')]).toEqual([0.75, 0.25])
  await traffic(own, 'DELETE')
  expect(await page()).not.toContain('torchserve_ts_traffic_share{')
  expect(await metric('requests_total', '2.0')).toBe(2)
  await own.stop()
})

test('sequences stay on the version that they began on, whatever becomes of the weights', async () => {
  const config = { sequenceBatching: true, maxNumSequence: 10, sequenceMaxIdleMSec: 600_000 }
  const options = { handler: 'sequences', config }
  const own = await startVersions({ '1.0': options, '2.0': options })
  const pids = new Map<string, string>()
  for (const version of ['1.0', '2.0']) {
    const [described] = await own.describe('m', `/${version}`)
    pids.set(String(described!.workers[0]!.pid), version)
  }
  const add = async (id: string, number: number): Promise<[sum: string, version: string | undefined]> => {
    const { body, headers } = await predict(own, String(number), {
      ts_request_sequence_id: id,
      'content-type': 'text/plain',
    })
    return [body, pids.get(headers['x-pid']!)]
  }
  await traffic(own, 'PUT', { weights: { '1.0': 1, '2.0': 1 } })
  expect([await add('a', 1), await add('b', 10)]).toEqual([
    ['1', '1.0'],
    ['10', '2.0'],
  ])
  await traffic(own, 'PUT', { weights: { '1.0': 1 } })
  expect([await add('b', 10), await add('a', 1), await add('c', 5)]).toEqual([
    ['20', '2.0'],
    ['2', '1.0'],
    ['5', '1.0'],
  ])
  await traffic(own, 'DELETE')
  expect([await add('b', 10), await add('a', 1)]).toEqual([
    ['30', '2.0'],
    ['3', '1.0'],
  ])
  await own.stop()
})

function snapshotsOf({ folder }: Server): string[] {
  const place = join(folder, 'logs', 'config')
  const names = readdirSync(place).filter((name) => name.endsWith('.cfg'))
  return names.map((name) => readFileSync(join(place, name), 'utf8'))
}

test('weights, and what was rolled back, outlive a restart', async () => {
  const store = tempDir()
  for (const version of ['1.0', '2.0', '3.0']) writeVersion(store, `m-${version}`, version)
  const options = { modelStore: store, snapshots: true } as const
  const first = await startServer(options)
  for (const version of ['1.0', '2.0', '3.0']) await register(first, `m-${version}`)
  const rollback = { maxErrorPercent: 0, minRequests: 1, windowSeconds: 60 }
  await traffic(first, 'PUT', {
    weights: { '1.0': 6, '2.0': 3, '3.0': 1 },
    sticky: { header: 'x-user' },
    rollback,
  })
  await bodies(10, () => predict(first, 'fail 3.0'))
  const before = (await traffic(first, 'GET')).json
  expect(before['weights']).toEqual({ '1.0': 6, '2.0': 3, '3.0': 0 })
  // Requests do not wait for the snapshot of a roll-back.
  await first.until(
    () => Promise.resolve(snapshotsOf(first)),
    (texts) => texts.some((text) => text.includes('rolledBack')),
  )
  await first.stop('SIGKILL')

  const second = await startServer({ ...options, folder: first.folder })
  await second.ready('m')
  for (const version of ['/1.0', '/2.0', '/3.0'])
    await second.until(
      () => second.describe('m', version),
      ([model]) => model!.workers[0]?.status === 'READY',
    )
  const { versions, ...settings } = (await traffic(second, 'GET')).json
  const { versions: former, ...wanted } = before
  expect(settings).toEqual(wanted)
  const withoutCounts = (list: unknown): unknown =>
    (list as object[]).map((version) => ({ ...version, requests: 0, errors: 0 }))
  expect(versions).toEqual(withoutCounts(former))
  expect(count(await bodies(9, () => predict(second)))).toBe(3)
  await second.stop()
})

describe('who may', () => {
  const hash = (key: string): string => createHash('sha256').update(key).digest('hex')
  const KEYS = ['manager', 'other', 'ann', 'bob', 'cid', 'dan'] as const
  let guarded: Server

  beforeAll(async () => {
    const folder = tempDir()
    const path = join(folder, 'keys.json')
    const keys = KEYS.map((name) => ({
      name,
      sha256: hash(`key-of-${name}`),
      scopes: name === 'manager' || name === 'other' ? ['management'] : ['inference'],
      models: [name === 'other' ? 'x*' : 'm*'],
    }))
    writeFileSync(path, JSON.stringify({ keys }), { mode: 0o600 })
    const store = tempDir()
    guarded = await startServer({
      modelStore: store,
      flags: ['--enable-model-api'],
      config: { api_keys_file: path },
    })
    guarded.headers = { authorization: 'Bearer key-of-manager' }
    for (const version of ['1.0', '2.0']) {
      writeVersion(store, `m-${version}`, version)
      await register(guarded, `m-${version}`)
    }
  })

  const as = async (name: string): Promise<string> =>
    (await predict(guarded, '', { authorization: `Bearer key-of-${name}` })).body

  test('a key of management for the model sets weights, and the audit log says who set what', async () => {
    expect(await traffic(guarded, 'PUT', { weights: { '1.0': 2, '2.0': 1 } })).toMatchObject({ status: 200 })
    await guarded.until(
      async () => audit(guarded).filter(({ operation }) => operation === 'set traffic'),
      ([entry]) =>
        entry?.['detail'] === '{"1.0":2,"2.0":1}' &&
        (entry['who'] as { name: string }).name === 'manager' &&
        entry['model'] === 'm',
    )
  })

  test.each([
    ['of other models', { authorization: 'Bearer key-of-other' }, 404],
    ['of inference', { authorization: 'Bearer key-of-ann' }, 400],
    ['that is none', {}, 400],
  ])('a key %s does not', async (_, headers, status) => {
    const own = Object.assign(Object.create(guarded) as Server, { headers })
    for (const method of ['GET', 'DELETE']) expect((await traffic(own, method)).status).toBe(status)
    expect((await traffic(own, 'PUT', { weights: { '2.0': 1 } })).status).toBe(status)
    expect((await traffic(guarded, 'GET')).json['weights']).toEqual({ '1.0': 2, '2.0': 1 })
  })

  test('sticky by caller: each key has its version', async () => {
    await traffic(guarded, 'PUT', { weights: { '1.0': 1, '2.0': 1 }, sticky: { caller: true } })
    const found = new Set<string>()
    for (const name of ['ann', 'bob', 'cid', 'dan']) {
      const [version, ...more] = await bodies(6, async () => ({ body: await as(name) }) as RawResponse)
      expect(more).toEqual(Array(5).fill(version))
      found.add(version!)
    }
    expect([...found].sort()).toEqual(['1.0', '2.0'])
  })
})

test('describe over gRPC tells the part of a version too', async () => {
  await traffic(server, 'PUT', { weights: { '2.0': 1 } })
  const client = managementClient(server.ports.grpcManagement)
  const { msg } = await call(client, client.DescribeModel, { model_name: 'm', model_version: '2.0' })
  client.close()
  expect(JSON.parse(msg)).toMatchObject([{ traffic: { weight: 1, share: 1 } }])
})
