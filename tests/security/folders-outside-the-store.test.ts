import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const modelStore = tempDir()
const outside = join(tempDir(), 'outside')
const operators = join(tempDir(), 'operators')
let server: Server

function makeModel(folder: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'handler.mjs'),
    "export const handle = (requests) => requests.map(() => 'hello')\n",
  )
}

beforeAll(async () => {
  for (const folder of [outside, operators, join(modelStore, 'stored')]) makeModel(folder)
  // With no allowed_urls; the operator's own model stands outside the store.
  server = await startServer({
    modelStore,
    models: [`operators=${operators}`],
    config: { ts_open_inference_protocol: true, default_workers_per_model: 1 },
  })
  await server.ready('operators')
})

afterAll(() => server.stop())

function register(url: string): Promise<{ status: number; json: unknown }> {
  return server.manage('POST', `/models?url=${encodeURIComponent(url)}&model_name=m`)
}

test.each([
  ['a path', () => '/etc'],
  ['a file URL', () => 'file:///etc'],
  ['a file URL with a host', () => 'file://localhost/etc'],
  ['a file URL in capitals', () => 'FILE:///etc'],
  ['a file URL without slashes', () => 'file:/etc'],
  ['a model', () => outside],
  ['the URL of a model', () => pathToFileURL(outside).href],
])('%s outside the model store cannot be registered', async (_, url) => {
  const { status, json } = await register(url())
  expect([status, json]).toEqual([
    404,
    {
      code: 404,
      type: 'ModelNotFoundException',
      message: `Given URL ${url()} does not match any allowed URL(s)`,
    },
  ])
})

test.each([
  '..',
  '../..',
  'stored/../../..',
  './../../etc',
  '%2e%2e/etc',
  '..%2fetc',
  'stored/%2e%2e/%2e%2e',
  '~',
  '',
])('no way out of the store leads to a model: %j', async (url) => {
  const { status } = await register(url)
  expect([400, 404]).toContain(status)
  expect((await server.manage('GET', '/models/m')).status).toBe(404)
})

test('what is in the store can be, by its name, path and URL', async () => {
  const stored = join(modelStore, 'stored')
  for (const url of ['stored', stored, pathToFileURL(stored).href]) {
    expect((await register(url)).status).toBe(200)
    expect((await server.manage('DELETE', '/models/m')).status).toBe(200)
  }
})

test('a client can load the operator’s model again, and no other path under its name', async () => {
  const { status } = await rawRequest(server.ports.inference, '/v2/repository/models/operators/load', {
    body: '{}',
  })
  expect(status).toBe(200)
  const { json } = await server.manage('GET', '/models/operators')
  expect(json).toMatchObject([{ modelUrl: operators }])
})
