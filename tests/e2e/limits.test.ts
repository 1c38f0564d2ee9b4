import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata, status as Status } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { call, inferenceClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'

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
