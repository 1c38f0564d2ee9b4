import { once } from 'node:events'
import { createServer } from 'node:http'
import { renameSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { Client, credentials, Metadata, type StatusObject } from '@grpc/grpc-js'
import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { restRoutes } from '../e2e/token-routes.ts'
import { writeApiKeys } from '../support/api-keys.ts'
import { COUNT, countBody, ECHO } from '../support/count.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { reflectedRpcs } from '../support/reflection.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

/** As long as `echo`, so that it can stand for it in any answer; no model has it. */
const ABSENT = 'nono'

const ENTRIES = {
  inference: { scopes: ['inference'] },
  management: { scopes: ['management'] },
  metrics: { scopes: ['metrics'] },
  counter: { scopes: ['inference'], models: ['cou*'] },
  temporary: { scopes: ['inference'] },
  lasting: { scopes: ['inference'] },
} as const

type Caller = keyof typeof ENTRIES | 'jwt'

const path = join(tempDir(), 'keys.json')

/** Puts the keys file in place, without some callers. */
function writeKeys(...revoked: string[]): void {
  const keys = Object.entries(ENTRIES)
    .filter(([name]) => !revoked.includes(name))
    .map(([name, grant]) => ({ name, ...grant }))
  writeApiKeys(keys, `${path}.new`)
  renameSync(`${path}.new`, path)
}

let server: Server
let jwt: string
const jwks = createServer()

beforeAll(async () => {
  const { privateKey, publicKey } = await generateKeyPair('ES256')
  const keys = JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: 'one' }] })
  jwks.on('request', (_request, response) => response.end(keys)).listen(0, '127.0.0.1')
  await once(jwks, 'listening')
  jwt = await new SignJWT({ sub: 'someone', scope: 'torchserve:inference', torchserve_models: ['count'] })
    .setProtectedHeader({ alg: 'ES256', kid: 'one' })
    .setIssuer('https://issuer.example')
    .setAudience('models')
    .setExpirationTime('1h')
    .sign(privateKey)
  writeKeys()
  server = await startServer({
    models: [ECHO, COUNT],
    flags: ['--enable-model-api'],
    config: {
      api_keys_file: path,
      jwt_issuer: 'https://issuer.example',
      jwt_audience: 'models',
      jwt_jwks_url: `http://127.0.0.1:${(jwks.address() as AddressInfo).port}/`,
      ts_open_inference_protocol: true,
      open_inference_grpc_port: 0,
      triton_grpc_port: 0,
    },
  })
  const isReady = async (): Promise<boolean> =>
    (await ask('management', 'GET', '/models/count', 'management')).includes('"READY"') &&
    (await ask('management', 'GET', '/models/echo', 'management')).includes('"READY"')
  await server.until(isReady, (ready) => ready)
})

afterAll(() => {
  jwks.closeAllConnections()
  jwks.close()
})

function bearer(caller: Caller | undefined): Record<string, string> {
  if (caller === undefined) return {}
  return { authorization: `Bearer ${caller === 'jwt' ? jwt : `tsk_${caller}`}` }
}

type RestListener = 'inference' | 'management'

/** Status and body, without what differs from request to request. */
async function ask(
  listener: RestListener,
  method: string,
  url: string,
  caller?: Caller,
  body = '',
): Promise<string> {
  const answer = await rawRequest(server.ports[listener], url, { method, headers: bearer(caller), body })
  return `${answer.status} ${answer.body.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, 'ID')}`
}

function isRefusal(answer: string): boolean {
  return answer.startsWith('401 ') || answer.includes('"InvalidKeyException"') || answer === '400 '
}

/** The listeners of gRPC and their ports. */
function grpcPorts(): number[] {
  const { grpcInference, grpcManagement, openInference, triton } = server.ports
  return [grpcInference, grpcManagement, openInference, triton]
}

/** Any rpc as one that streams both ways. The first field of nearly every request is the name of a model. */
function call(client: Client, rpc: string, caller: Caller | undefined, model: string): Promise<string> {
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(bearer(caller))) metadata.set(name, value)
  const asItIs = (bytes: Buffer): Buffer => bytes
  return new Promise((resolve) => {
    const received: string[] = []
    const stream = client.makeBidiStreamRequest(rpc, asItIs, asItIs, metadata, {
      deadline: Date.now() + 15_000,
    })
    stream.on('error', () => undefined).on('data', (data: Buffer) => received.push(data.toString('latin1')))
    stream.on('status', ({ code, details }: StatusObject) =>
      resolve(`${code} ${details} ${received.join('|')}`),
    )
    stream.write(Buffer.concat([Buffer.of(0x0a, model.length), Buffer.from(model)]))
    stream.end()
  })
}

function needOf(rpc: string): 'inference' | 'management' {
  return /ManagementAPIsService|\/RepositoryModel(Load|Unload)$/.test(rpc) ? 'management' : 'inference'
}

async function rpcsOf(port: number): Promise<string[]> {
  const services = [...(await reflectedRpcs(port)).entries()]
  return services.filter(([service]) => !service.startsWith('grpc.')).flatMap(([, rpcs]) => rpcs)
}

describe('each route and rpc that the server has', () => {
  test.each(['inference', 'management'] as const)(
    'REST, %s: is open to keys with its scope alone',
    async (listener) => {
      const routes = restRoutes(listener).filter(({ needs }) => needs !== 'nothing' && needs !== 'API')
      expect(routes.length).toBeGreaterThan(10)
      const mistakes: string[] = []
      for (const { method, path: named, needs } of routes) {
        // HEAD has no body that tells.
        if (method === 'HEAD') continue
        // So that nothing is unloaded that other tests ask for, and no stream goes on for ever.
        const url = named === '/events' ? '/events?topics=none' : named.replaceAll('echo', ABSENT)
        for (const caller of ['inference', 'management', 'metrics'] as const) {
          const answer = await ask(listener, method, url, caller)
          if (isRefusal(answer) !== (caller !== needs)) mistakes.push(`${method} ${url} ${caller}: ${answer}`)
        }
      }
      expect(mistakes).toEqual([])
    },
  )

  test('gRPC: is open to keys with its scope alone', async () => {
    const mistakes: string[] = []
    for (const port of grpcPorts()) {
      const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
      const rpcs = await rpcsOf(port)
      expect(rpcs.length).toBeGreaterThan(3)
      for (const rpc of rpcs) {
        for (const caller of ['inference', 'management', 'metrics'] as const) {
          const answer = await call(client, rpc, caller, ABSENT)
          const refused = answer.includes('Token Authorization failed')
          if (refused !== (caller !== needOf(rpc))) mistakes.push(`${rpc} ${caller}: ${answer}`)
        }
      }
      client.close()
    }
    expect(mistakes).toEqual([])
  })

  test('REST: answers for a model that the key may not use as for one that is not there', async () => {
    const listener = 'inference'
    const mistakes: string[] = []
    const told: string[] = []
    // The raw client would wait for the body of an answer to HEAD.
    const named = restRoutes(listener).filter(({ method, path: url, needs }) => {
      return method !== 'HEAD' && url.includes('echo') && needs !== 'management'
    })
    expect(named.length).toBeGreaterThan(8)
    for (const { method, path: url, needs } of named) {
      const absent = url.replaceAll('echo', ABSENT)
      for (const caller of ['counter', 'jwt'] as const) {
        const forbidden = await ask(listener, method, url, caller)
        const unknown = await ask(listener, method, absent, caller)
        if (forbidden.replaceAll('echo', ABSENT) !== unknown) mistakes.push(`${method} ${url}: ${forbidden}`)
      }
      // The same for a key that may use it tells the two apart, or this test could not fail.
      if (method !== 'DELETE' && !url.endsWith('load') && needs !== 'nothing' && needs !== 'API') {
        const there = await ask(listener, method, url, needs)
        if (there.replaceAll('echo', ABSENT) !== (await ask(listener, method, absent, needs))) told.push(url)
      }
    }
    expect(mistakes).toEqual([])
    expect(told.length).toBeGreaterThan(8)
  })

  test('gRPC: answers for a model that the key may not use as for one that is not there', async () => {
    const mistakes: string[] = []
    for (const port of grpcPorts()) {
      const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure())
      for (const rpc of (await rpcsOf(port)).filter((each) => needOf(each) === 'inference')) {
        const forbidden = await call(client, rpc, 'counter', 'echo')
        const unknown = await call(client, rpc, 'counter', ABSENT)
        if (forbidden.replaceAll('echo', ABSENT) !== unknown)
          mistakes.push(`${rpc}: ${forbidden} / ${unknown}`)
      }
      client.close()
    }
    expect(mistakes).toEqual([])
    expect(await ask('management', 'GET', '/models/echo', 'management')).toContain('"modelName": "echo"')
  })
})

test('a key with models reaches its own, over every API', async () => {
  for (const caller of ['counter', 'jwt'] as const) {
    const body = JSON.stringify({ n: 2, stream: false })
    expect(await ask('inference', 'POST', '/predictions/count', caller, body)).toMatch(/^200 /)
    expect(await ask('inference', 'GET', '/v2/models/count', caller)).toMatch(/^200 /)
    expect(await ask('inference', 'GET', '/v1/models/count', caller)).toMatch(/^200 /)
    expect(await ask('inference', 'GET', '/v2/models/count/ready', caller)).toMatch(/^200 /)
  }
  const client = new Client(`127.0.0.1:${server.ports.openInference}`, credentials.createInsecure())
  expect(await call(client, '/inference.GRPCInferenceService/ModelReady', 'counter', 'count')).toMatch(/^0 /)
  expect(await call(client, '/inference.GRPCInferenceService/ModelReady', 'jwt', 'count')).toMatch(/^0 /)
  client.close()
})

test('lists show the models that the key may use', async () => {
  const lists = async (caller: Caller): Promise<string> => {
    const client = new Client(`127.0.0.1:${server.ports.triton}`, credentials.createInsecure())
    const answers = [
      await ask('inference', 'GET', '/v1/models', caller),
      await ask('inference', 'GET', '/v2/models', caller),
      await ask('inference', 'POST', '/v2/repository/index', caller),
      await call(client, '/inference.GRPCInferenceService/RepositoryIndex', caller, ''),
    ]
    client.close()
    expect(answers.filter((answer) => answer.includes('count'))).toHaveLength(4)
    return answers.join()
  }
  expect(await lists('inference')).toContain('echo')
  expect(await lists('counter')).not.toContain('echo')
})

test('a revoked key is refused without a restart; what runs goes on, and other keys notice nothing', async () => {
  const run = { id: 'revoked', n: 30, delay: 50 }
  const { headers, body } = countBody(run)
  const stream = new RawRequest(server.ports.inference, '/predictions/count', {
    headers: { ...headers, ...bearer('temporary') },
    body,
  })
  const client = new Client(`127.0.0.1:${server.ports.grpcInference}`, credentials.createInsecure())
  const ping = '/org.pytorch.serve.grpc.inference.InferenceAPIsService/Ping'
  await stream.gotChunks(1)
  expect(await ask('inference', 'GET', '/ping', 'temporary')).toMatch(/^200 /)
  expect(await call(client, ping, 'temporary', '')).toMatch(/^0 /)
  writeKeys('temporary')
  const revokedAt = performance.now()
  while (!isRefusal(await ask('inference', 'GET', '/ping', 'temporary'))) {
    if (performance.now() - revokedAt > 15_000) throw new Error('The key still works')
  }

  expect(await call(client, ping, 'temporary', '')).toContain('Token Authorization failed')
  expect(await ask('inference', 'GET', '/ping', 'lasting')).toMatch(/^200 /)
  const { complete, chunks } = await stream.done
  expect([complete, chunks.length]).toEqual([true, 30])
  client.close()
})
