import { describe, expect, test } from '@jest/globals'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
} from '../../../frontend/dialects/rest-apps.ts'
import { ask, startRig } from '../../support/http/rig.ts'

const PAGE = 'https://app.example.com'
const OTHER = 'https://other.example.com'
const LOOPBACK = 'http://localhost:3000'

type Rig = Awaited<ReturnType<typeof startRig>>

/** What a browser asks before it lets a page send JSON with a token. */
async function preflight(rig: Rig, path: string, origin: string, method = 'POST') {
  const asked = 'authorization,content-type'
  const headers = {
    origin,
    'access-control-request-method': method,
    'access-control-request-headers': asked,
  }
  const { status, headers: got, text } = await ask(rig, path, { method: 'OPTIONS', headers })
  return [status, got.get('access-control-allow-origin'), got.get('access-control-allow-headers'), text]
}

const ALLOWED = [200, PAGE, 'authorization,content-type', '']

describe.each([
  ['without tokens', false],
  ['with tokens', true],
])('a preflight of an allowed page, %s', (_what, tokens) => {
  test.each([
    ['/v2/models/m/infer'],
    ['/v2/models/m/infer_stream'],
    ['/v2/models/m/generate_stream'],
    ['/v2/models/m/versions/1.0/infer'],
    ['/v2/health/ready'],
    ['/v1/chat/completions'],
    ['/v1/models/m:predict'],
    ['/openai/v1/embeddings'],
    ['/predictions/m'],
    ['/predictions/m/1.0'],
    ['/explanations/m'],
    ['/invocations'],
    ['/wfpredict/w'],
    ['/ping'],
    ['/'],
  ])('is answered without a token: %s', async (path) => {
    for (const create of [createInferenceApp, createSharedApp]) {
      const rig = await startRig(create, { tokens, cors: PAGE })
      expect(await preflight(rig, path, PAGE)).toEqual(ALLOWED)
      expect(rig.models.jobs).toEqual([])
    }
  })

  test('is answered by the other listeners too', async () => {
    const management = await startRig(createManagementApp, { tokens, cors: PAGE })
    expect(await preflight(management, '/models/m', PAGE, 'DELETE')).toEqual(ALLOWED)
    const metrics = await startRig(createMetricsApp, { tokens, cors: PAGE })
    expect(await preflight(metrics, '/metrics', PAGE, 'GET')).toEqual(ALLOWED)
  })
})

test('an OPTIONS that is no preflight is TorchServe’s description, and needs its token', async () => {
  const rig = await startRig(createInferenceApp, { cors: PAGE })
  const { status, text } = await ask(rig, '/predictions/m', { method: 'OPTIONS', headers: { origin: PAGE } })
  expect([status, (JSON.parse(text) as { openapi: string }).openapi]).toEqual([200, '3.0.1'])
  const guarded = await startRig(createInferenceApp, { cors: PAGE, tokens: true })
  const method = { 'access-control-request-method': 'POST' }
  expect((await ask(guarded, '/predictions/m', { method: 'OPTIONS', headers: method })).status).toBe(400)
  const off = await startRig(createInferenceApp)
  expect((await preflight(off, '/predictions/m', LOOPBACK))[1]).toBeNull()
})

test('of several origins the one that asks is in the response, and caches are told', async () => {
  const rig = await startRig(createInferenceApp, { cors: `${PAGE}, ${OTHER}` })
  const get = async (headers: Record<string, string>) => {
    const { headers: got } = await ask(rig, '/v1/models', { headers })
    return [got.get('access-control-allow-origin'), got.get('vary')]
  }
  expect(await get({ origin: PAGE })).toEqual([PAGE, 'Origin'])
  expect(await get({ origin: OTHER })).toEqual([OTHER, 'Origin'])
  expect(await get({ origin: LOOPBACK })).toEqual([null, 'Origin'])
  expect(await get({})).toEqual([null, 'Origin'])
  expect((await preflight(rig, '/v2/models/m/infer', OTHER))[1]).toBe(OTHER)
  expect((await preflight(rig, '/v2/models/m/infer', LOOPBACK))[1]).toBeNull()
})

test('`loopback` is every page of this machine, and no other', async () => {
  const rig = await startRig(createInferenceApp, { cors: 'loopback' })
  for (const page of [LOOPBACK, 'http://127.0.0.1:8080', 'http://[::1]:5173'])
    expect((await preflight(rig, '/v1/chat/completions', page))[1]).toBe(page)
  expect((await preflight(rig, '/v1/chat/completions', 'http://localhost.example.com'))[0]).toBe(403)
})

test('what is configured comes before what is asked for, and pages may read the exposed headers', async () => {
  const rig = await startRig(createInferenceApp, {
    cors: PAGE,
    corsAllowedHeaders: 'x-own',
    corsExposedHeaders: 'x-request-id, retry-after',
  })
  expect(await preflight(rig, '/v2', PAGE)).toEqual([200, PAGE, 'x-own', ''])
  const { headers } = await ask(rig, '/ping', { headers: { origin: PAGE } })
  expect(headers.get('access-control-expose-headers')).toBe('x-request-id, retry-after')
})
