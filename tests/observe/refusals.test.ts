import { once } from 'node:events'
import { connect } from 'node:net'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Metadata } from '@grpc/grpc-js'
import { expect, test } from '@jest/globals'
import { call, inferenceClient } from '../support/grpc-clients.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const requests = (server: Server, reason: string): Promise<number> =>
  server.metric('torchserve_ts_refused_requests_total', { reason })
const connections = (server: Server, pool: string): Promise<number> =>
  server.metric('torchserve_ts_refused_connections_total', { pool })

test('requests that are refused at the door are counted by reason, over REST and gRPC', async () => {
  const server = await startServer({ flags: [], config: { key_requests_per_second: 0.01 } })
  const { inference, grpcInference } = server.ports
  const ask = (authorization?: string) =>
    rawRequest(inference, '/ping', {
      method: 'GET',
      headers: authorization === undefined ? {} : { authorization },
    })
  const client = inferenceClient(grpcInference)
  const ping = (authorization?: string): Promise<unknown> => {
    const metadata = new Metadata()
    if (authorization !== undefined) metadata.set('authorization', authorization)
    return call(client, client.Ping, {}, metadata).catch(() => undefined)
  }
  const counts = async (): Promise<number[]> =>
    Promise.all(['no_token', 'not_accepted', 'rate_limit'].map((reason) => requests(server, reason)))
  const before = await counts()
  await ask()
  expect(await counts()).toEqual([before[0]! + 1, 0, 0])
  await ping()
  expect(await counts()).toEqual([before[0]! + 2, 0, 0])
  await ask('Bearer wrong')
  await ping('Bearer wrong')
  expect(await counts()).toEqual([before[0]! + 2, 2, 0])
  const keys = JSON.parse(readFileSync(join(server.folder, 'key_file.json'), 'utf8')) as {
    inference: { key: string }
  }
  const right = `Bearer ${keys.inference.key}`
  expect((await ask(right)).status).toBe(200)
  expect((await ask(right)).status).toBe(429)
  await ping(right)
  client.close()
  expect(await counts()).toEqual([before[0]! + 2, 2, 2])
})

test.each(['inference', 'grpcInference'] as const)(
  'connections that are refused are counted: %s',
  async (listener) => {
    const server = await startServer({ config: { max_connections: 4 } })
    expect(await connections(server, 'inference')).toBe(0)
    const sockets = []
    for (let k = 0; k < 5; k += 1) {
      const socket = connect(server.ports[listener], '127.0.0.1')
      sockets.push(socket.on('error', () => undefined).resume())
      await once(socket, 'connect').catch(() => undefined)
    }
    expect(
      await server.until(
        () => connections(server, 'inference'),
        (count) => count >= 3,
      ),
    ).toBe(3)
    expect(await connections(server, 'management')).toBe(0)
    // Those of REST are answered, with 503.
    expect(await server.metric('Requests5XX', {})).toBe(listener === 'inference' ? 3 : 0)
    for (const socket of sockets) socket.destroy()
  },
)
