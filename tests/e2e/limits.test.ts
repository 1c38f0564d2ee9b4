import { createHash } from 'node:crypto'
import { readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata, status as Status } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { call, inferenceClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const ECHO = join(import.meta.dirname, '..', '..', 'model-store', 'echo')

test('limits of the configuration hold over REST and gRPC together, for each token by itself', async () => {
  const config = { key_requests_per_second: 0.01, metrics_require_token: true }
  const server = await startServer({ models: [ECHO], config, flags: ['--enable-model-api'] })
  const keys = JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as Record<
    'inference' | 'management',
    { key: string }
  >
  const ask = (port: number, path: string, token: string, method = 'GET') =>
    rawRequest(port, path, { method, headers: { authorization: `Bearer ${token}` } })
  const { inference, management, metrics, grpcInference } = server.ports
  const scale = '/models/echo?min_worker=1&password=hunter2'
  expect((await ask(inference, '/ping', keys.inference.key)).status).toBe(200)
  const refused = await ask(inference, '/ping', keys.inference.key)
  expect(refused.status).toBe(429)
  expect(Number(refused.headers['retry-after'])).toBeGreaterThan(80)
  const client = inferenceClient(grpcInference)
  const token = new Metadata()
  token.set('authorization', `Bearer ${keys.inference.key}`)
  await expect(call(client, client.Ping, {}, token)).rejects.toMatchObject({
    code: Status.RESOURCE_EXHAUSTED,
  })
  client.close()
  // The other token has a limit of its own.
  expect((await ask(management, scale, keys.management.key, 'PUT')).status).toBe(202)
  expect((await ask(metrics, '/metrics', 'wrong')).status).toBe(400)
  expect((await ask(metrics, '/metrics', keys.management.key)).status).toBe(429)
  await server.stop()

  const file = join(server.folder, 'logs', 'audit_log.log')
  const text = readFileSync(file, 'utf8')
  for (const secret of [keys.inference.key, keys.management.key, 'wrong', 'hunter2'])
    expect(text).not.toContain(secret)
  expect(statSync(file).mode & 0o777).toBe(0o640)
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  expect(lines).toMatchObject([
    { event: 'limit', operation: 'GET /ping', who: { name: 'inference', kind: 'token' } },
    { event: 'limit', protocol: 'grpc' },
    {
      event: 'management',
      operation: 'scale model',
      outcome: 'done',
      who: { name: 'management', kind: 'token' },
    },
    { event: 'authentication', operation: 'GET /metrics', outcome: 'refused' },
    { event: 'limit', operation: 'GET /metrics' },
  ])
})

test('two keys of a file: the one with a limit is refused beyond it, the other is not', async () => {
  const folder = tempDir()
  const path = join(folder, 'keys.json')
  const entry = (name: string, requestsPerSecond?: number) => ({
    name,
    sha256: createHash('sha256').update(name).digest('hex'),
    scopes: ['inference'],
    ...(requestsPerSecond !== undefined && { limits: { requestsPerSecond } }),
  })
  const write = (...keys: unknown[]): void => {
    writeFileSync(`${path}.new`, JSON.stringify({ keys }))
    renameSync(`${path}.new`, path)
  }
  write(entry('limited', 0.001), entry('free'))
  const server = await startServer({ models: [ECHO], config: { api_keys_file: path }, flags: [] })
  const predict = async (name: string): Promise<number> => {
    const headers = { authorization: `Bearer ${name}` }
    return (await rawRequest(server.ports.inference, '/predictions/echo', { body: 'x', headers })).status
  }
  await server.until(
    () => predict('free'),
    (status) => status === 200,
  )
  const both = async (count: number): Promise<string> => {
    const statuses = { limited: [] as number[], free: [] as number[] }
    for (let i = 0; i < count; i++) {
      statuses.limited.push(await predict('limited'))
      statuses.free.push(await predict('free'))
    }
    const of = (all: number[], status: number): number => all.filter((each) => each === status).length
    const { limited, free } = statuses
    return `limited ${of(limited, 200)} + ${of(limited, 429)} refused, free ${of(free, 200)}`
  }
  expect(await both(40)).toBe('limited 1 + 39 refused, free 40')
  write(entry('limited'), entry('free'))
  await server.until(
    () => predict('limited'),
    (status) => status === 200,
  )
  expect(await both(10)).toBe('limited 10 + 0 refused, free 10')
  await server.stop()
  const text = readFileSync(join(server.folder, 'logs', 'audit_log.log'), 'utf8')
  const changes = text.split('\n').filter((line) => line.includes('"event":"keys"'))
  expect(changes.map((line) => JSON.parse(line) as unknown)).toMatchObject([
    { operation: 'read api_keys_file', outcome: 'done', detail: 'changed: api key limited' },
  ])
})
