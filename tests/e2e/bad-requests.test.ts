import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeAll, describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { call, inferenceClient, managementClient, type GrpcError } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Answer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { zipOf } from '../support/zip.ts'

let server: Server
let store: string

beforeAll(async () => {
  store = join(tempDir(), 'store')
  mkdirSync(store)
  writeFileSync(join(store, 'broken.mar'), 'PK\u0003\u0004 this is no archive')
  writeFileSync(
    join(store, 'climbing.mar'),
    await zipOf({ '../escaped.js': 'x', 'handler.js': 'export const handle = () => []' }),
  )
  const config = { max_request_size: 100_000, allowed_urls: 'file://.*|http://.*' }
  server = await startServer({ models: [ECHO], modelStore: store, config })
  await server.ready('echo')
})

// Whatever was wrong, the server goes on.
afterEach(async () => {
  const response = await rawRequest(server.ports.inference, '/predictions/echo', {
    headers: { 'content-type': 'text/plain' },
    body: 'still here',
  })
  expect(response.body).toBe('still here')
})

async function rest(
  path: string,
  options = {},
): Promise<{ status: number; json: Answer; headers: Record<string, string> }> {
  const { status, body, headers } = await rawRequest(server.ports.inference, path, options)
  return { status, headers, json: JSON.parse(body) as Answer }
}

describe('over REST', () => {
  test('an unknown model is 404', async () => {
    expect(await rest('/predictions/nobody')).toMatchObject({
      status: 404,
      json: { code: 404, type: 'ModelNotFoundException', message: 'Model not found: nobody' },
    })
  })

  test('an unknown version is 404', async () => {
    expect(await rest('/predictions/echo/9.9')).toMatchObject({
      status: 404,
      json: {
        type: 'ModelVersionNotFoundException',
        message: 'Model version: 9.9 does not exist for model: echo',
      },
    })
  })

  test('an unknown route is 404, a wrong method 405', async () => {
    expect((await rest('/nowhere/at/all/or/so')).json).toMatchObject({
      code: 404,
      type: 'ResourceNotFoundException',
    })
    expect((await server.manage('PATCH', '/models/echo')).json).toMatchObject({
      code: 405,
      type: 'MethodNotAllowedException',
    })
  })

  test('a body over the limit is 413, declared or not', async () => {
    const declared = await rawRequest(server.ports.inference, '/predictions/echo', {
      body: 'x'.repeat(200_000),
    })
    expect(declared).toMatchObject({
      status: 413,
      body: expect.stringContaining('The request is larger than max_request_size'),
    })
    const chunked = await rawRequest(server.ports.inference, '/predictions/echo', {
      method: 'GET',
      headers: { 'transfer-encoding': 'chunked' },
      body: `30d40\r\n${'x'.repeat(200_000)}\r\n0\r\n\r\n`,
    })
    expect(chunked).toMatchObject({
      status: 413,
      body: expect.stringContaining('The request is larger than max_request_size'),
    })
  })

  test('a body with a transfer coding that is not known is 501', async () => {
    const answer = await rawRequest(server.ports.inference, '/predictions/echo', {
      method: 'GET',
      headers: { 'transfer-encoding': 'gzip, chunked' },
      body: '3\r\nabc\r\n0\r\n\r\n',
    })
    expect([answer.status, answer.reason, answer.headers['connection']]).toEqual([
      501,
      'Not Implemented',
      'close',
    ])
  })

  test('broken multipart is an error with a message', async () => {
    const response = await rest('/predictions/echo', {
      headers: { 'content-type': 'multipart/form-data; boundary=b' },
      body: '--b\r\ncontent-disposition: form-data; name="data"\r\n\r\nno end',
    })
    expect(response.status).toBeGreaterThanOrEqual(400)
    expect(response.json.message).not.toBe('')
  })

  test.each([
    ['broken.mar', 400],
    ['climbing.mar', 400],
    ['absent.mar', 404],
    ['../store/broken.mar', 404],
  ])('registering %s is %i and leaves nothing behind', async (url, status) => {
    const { status: got, json } = await server.manage('POST', `/models?url=${encodeURIComponent(url)}`)
    expect(got).toBe(status)
    expect(json.message?.length).toBeGreaterThan(10)
    const list = await server.manage('GET', '/models')
    expect(list.json.models?.map((m) => m.modelName)).toEqual(['echo'])
  })

  test('a model with a handler that is not there can be registered, but gets no workers', async () => {
    const path = `/models?url=${join(REPOSITORY, 'model-store', 'echo')}&model_name=lost&handler=nowhere&runtime=node`
    const failure = { code: 500, type: 'InternalServerException' }
    const withWorkers = await server.manage('POST', `${path}&initial_workers=1`)
    expect(withWorkers).toMatchObject({ status: 500, json: failure })
    expect(withWorkers.json.message).toContain('Handler nowhere is missing in model lost.')
    expect((await server.manage('POST', `${path}&initial_workers=0`)).status).toBe(200)
    const scaled = await server.manage('PUT', '/models/lost?min_worker=1&synchronous=true')
    expect(scaled).toMatchObject({ status: 500, json: failure })
    expect(await server.describe('lost')).toMatchObject([{ minWorkers: 0, workers: [] }])
    expect((await server.manage('DELETE', '/models/lost')).status).toBe(200)
  })

  test('workers that may take no time to start are a failure, and so is a negative number of them', async () => {
    const echo = join(REPOSITORY, 'model-store', 'echo')
    const late = `/models?url=${echo}&model_name=late&initial_workers=2&startup_timeout=0`
    expect((await server.manage('POST', late)).status).toBe(500)
    expect((await server.manage('GET', '/models/late')).status).toBe(404)
    expect((await server.manage('PUT', '/models/echo?min_worker=-1')).status).toBe(500)
  })

  test('registering the same version again is 409', async () => {
    writeFileSync(
      join(store, 'echo.mar'),
      await zipOf({ 'handler.js': 'export const handle = (r) => r.map(() => "x")' }),
    )
    const { status, json } = await server.manage('POST', '/models?url=echo.mar&initial_workers=0')
    expect(status).toBe(409)
    expect(json.message).toBe('Model version 1.0 is already registered for model echo')
  })
})

describe('over gRPC', () => {
  const code = (promise: Promise<unknown>): Promise<number> =>
    promise.then(
      () => 0,
      (error: unknown) => (error as GrpcError).code,
    )

  test('an unknown model is INTERNAL for inference and NOT_FOUND for management, as in TorchServe', async () => {
    const inference = inferenceClient(server.ports.grpcInference)
    const management = managementClient(server.ports.grpcManagement)
    expect(await code(call(inference, inference.Predictions, { model_name: 'nobody', input: {} }))).toBe(13)
    expect(await code(call(management, management.DescribeModel, { model_name: 'nobody' }))).toBe(5)
    inference.close()
    management.close()
  })

  test('a message over the limit is RESOURCE_EXHAUSTED', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const input = { data: Buffer.alloc(200_000) }
    expect(await code(call(client, client.Predictions, { model_name: 'echo', input }))).toBe(8)
    client.close()
  })
})
