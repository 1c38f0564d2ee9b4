import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { call, inferenceClient, managementClient, type GrpcError } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const PERMISSION_DENIED = 7

let server: Server
let keys: Record<'inference' | 'management' | 'API', { key: string }>

beforeAll(async () => {
  server = await startServer({ models: [ECHO], flags: [] })
  keys = JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as typeof keys
})

function bearer(key: string | undefined): Record<string, string> {
  return key === undefined ? {} : { authorization: `Bearer ${key}` }
}

async function restStatus(port: number, path: string, key?: string): Promise<number> {
  return (await rawRequest(port, path, { method: 'GET', headers: bearer(key) })).status
}

describe('with token authorization on, as it is by default', () => {
  test('the key file is for its owner only', () => {
    expect(statSync(join(server.folder, 'key_file.json')).mode & 0o777).toBe(0o600)
  })

  test('REST refuses no token, a wrong one and the other kind with 400, and takes the right one', async () => {
    const { inference, management } = server.ports
    for (const wrong of [undefined, 'nonsense', keys.management.key, keys.API.key]) {
      expect(await restStatus(inference, '/predictions/echo', wrong)).toBe(400)
      expect(await restStatus(inference, '/ping', wrong)).toBe(400)
    }
    for (const wrong of [undefined, 'nonsense', keys.inference.key, keys.API.key]) {
      expect(await restStatus(management, '/models', wrong)).toBe(400)
    }
    expect(await restStatus(inference, '/predictions/echo', keys.inference.key)).toBe(200)
    expect(await restStatus(management, '/models', keys.management.key)).toBe(200)
    expect(await restStatus(server.ports.metrics, '/metrics')).toBe(200)
  })

  test('gRPC refuses and takes the same', async () => {
    const inference = inferenceClient(server.ports.grpcInference)
    const management = managementClient(server.ports.grpcManagement)
    const ping = (key?: string) => code(call(inference, inference.Ping, {}, metadata(key)))
    const list = (key?: string) => code(call(management, management.ListModels, {}, metadata(key)))
    expect([await ping(), await ping(keys.management.key)]).toEqual([PERMISSION_DENIED, PERMISSION_DENIED])
    expect([await list(), await list(keys.inference.key)]).toEqual([PERMISSION_DENIED, PERMISSION_DENIED])
    expect([await ping(keys.inference.key), await list(keys.management.key)]).toEqual([0, 0])
    inference.close()
    management.close()
  })

  test('the model API is off by default on both protocols', async () => {
    const post = await rawRequest(server.ports.management, '/models?url=x.mar', {
      headers: bearer(keys.management.key),
    })
    expect(post.status).toBe(405)
    const client = managementClient(server.ports.grpcManagement)
    const register = call(client, client.RegisterModel, { url: 'x.mar' }, metadata(keys.management.key))
    await expect(register).rejects.toMatchObject({
      code: PERMISSION_DENIED,
      details: expect.stringContaining('Model API disabled: '),
    })
    client.close()
  })

  test('a new key replaces the old one', async () => {
    const rotate = await rawRequest(server.ports.management, '/token?type=inference', {
      headers: bearer(keys.API.key),
    })
    expect(rotate.status).toBe(200)
    const fresh = JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as typeof keys
    expect(fresh.inference.key).not.toBe(keys.inference.key)
    expect(await restStatus(server.ports.inference, '/ping', keys.inference.key)).toBe(400)
    expect(await restStatus(server.ports.inference, '/ping', fresh.inference.key)).toBe(200)
  })
})

function metadata(key: string | undefined): Metadata {
  const data = new Metadata()
  for (const [name, value] of Object.entries(bearer(key))) data.set(name, value)
  return data
}

function code(promise: Promise<unknown>): Promise<number> {
  return promise.then(
    () => 0,
    (error: unknown) => (error as GrpcError).code,
  )
}
