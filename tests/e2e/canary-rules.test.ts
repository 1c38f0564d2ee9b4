import { readFileSync, writeFileSync } from 'node:fs'
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

test('weights outlive a restart', async () => {
  const store = tempDir()
  for (const version of ['1.0', '2.0', '3.0']) writeVersion(store, `m-${version}`, version)
  const options = { modelStore: store, snapshots: true } as const
  const first = await startServer(options)
  for (const version of ['1.0', '2.0', '3.0']) await register(first, `m-${version}`)
  await traffic(first, 'PUT', {
    weights: { '1.0': 6, '2.0': 3, '3.0': 1 },
    sticky: { header: 'x-user' },
  })
  const before = (await traffic(first, 'GET')).json
  expect(before['weights']).toEqual({ '1.0': 6, '2.0': 3, '3.0': 1 })
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
    (list as object[]).map((version) => ({ ...version, requests: 0 }))
  expect(versions).toEqual(withoutCounts(former))
  expect(count(await bodies(10, () => predict(second)))).toBe(3)
  await second.stop()
})

describe('who may', () => {
  const hash = (key: string): string => createHash('sha256').update(key).digest('hex')
  const KEYS = ['manager', 'ann', 'bob', 'cid', 'dan'] as const
  let guarded: Server

  beforeAll(async () => {
    const folder = tempDir()
    const path = join(folder, 'keys.json')
    const keys = KEYS.map((name) => ({
      name,
      sha256: hash(`key-of-${name}`),
      ...(name === 'manager' ? { scopes: ['management'] } : { scopes: ['inference'], models: ['m*'] }),
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

  test('a key of management sets weights, and the audit log says who set what', async () => {
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
