import { once } from 'node:events'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, produced } from '../support/count.ts'
import { call, inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { allStopAtOnce, stopsAtOnce, type Look } from '../support/stops-at-once.ts'
import { spawn } from '../support/tools.ts'

let server: Server

beforeAll(async () => {
  // A second name with one slot, so that requests have to queue.
  server = await startServer({
    models: [COUNT, `single=${join(REPOSITORY, 'tests/support/handlers/single-slot-count')}`],
  })
  await Promise.all([server.ready('count'), server.ready('single')])
})

const look: Look = (id) => produced(server, id)
const stops = (leave: (id: string) => Promise<void>): Promise<void> => stopsAtOnce(look, leave)

const STREAM = { n: 10_000, delay: 10 }
/** Long enough that its run has begun on any machine. */
const DEADLINE_MS = 3_000

function begin(id: string, run: object = {}): RawRequest {
  return new RawRequest(server.ports.inference, '/predictions/count', countBody({ id, ...STREAM, ...run }))
}

describe('the handler stops at once when', () => {
  test('an HTTP client cuts its connection in mid-stream', () =>
    stops(async (id) => {
      const request = begin(id)
      await request.gotChunks(3)
      request.destroy()
    }))

  test('curl is ended', () =>
    stops(async (id) => {
      const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
      const data = JSON.stringify({ id, ...STREAM })
      const curl = spawn('curl', ['-sN', '-H', 'content-type: application/json', '-d', data, url])
      let lines = ''
      for await (const piece of curl.stdout) if ((lines += String(piece)).startsWith('1\n2\n3\n')) break
      curl.kill()
      if (curl.exitCode === null && curl.signalCode === null) await once(curl, 'exit')
    }))

  test('a unary client leaves', () =>
    stops(async (id) => {
      const request = begin(id, { stream: false })
      await someItems(id)
      request.destroy()
    }))

  test('a client half-closes', () =>
    stops(async (id) => {
      const request = begin(id)
      await request.gotChunks(2)
      await new Promise<void>((resolve) => request.socket.end(resolve))
    }))

  test('a gRPC call is cancelled', () =>
    withClient((client) =>
      stops(async (id) => {
        const stream = client.StreamPredictions(countInput({ id, ...STREAM }))
        const result = readAll(stream)
        await new Promise<void>((resolve) => stream.once('data', () => resolve()))
        stream.cancel()
        expect((await result).error?.code).toBe(1)
        await call(client, client.Ping, {})
      }),
    ))

  test('a gRPC deadline passes', () =>
    withClient((client) =>
      allStopAtOnce(look, async (ids) => {
        const deadline = Date.now() + DEADLINE_MS
        const runs = ids.map((id) =>
          readAll(client.StreamPredictions(countInput({ id, ...STREAM }), { deadline })),
        )
        for (const { error, messages } of await Promise.all(runs))
          expect([error?.code, messages.length > 2]).toEqual([4, true])
        await call(client, client.Ping, {})
      }),
    ))

  test('a gRPC unary call is cancelled', () =>
    withClient((client) =>
      stops(async (id) => {
        let unary: { cancel(): void } | undefined
        const code = new Promise<number | undefined>((resolve) => {
          const input = countInput({ id, ...STREAM, stream: false })
          unary = client.Predictions(input, (error) => resolve(error?.code))
        })
        await someItems(id)
        unary!.cancel()
        expect(await code).toBe(1)
        await call(client, client.Ping, {})
      }),
    ))
})

async function withClient(use: (client: ReturnType<typeof inferenceClient>) => Promise<void>): Promise<void> {
  const client = inferenceClient(server.ports.grpcInference)
  await use(client).finally(() => client.close())
}

function someItems(id: string): Promise<unknown> {
  return server.until(
    () => produced(server, id),
    ({ items }) => items > 2,
  )
}

describe('a queued request whose client leaves', () => {
  test('never starts, and the ones behind it do', async () => {
    const path = '/predictions/single'
    const first = new RawRequest(server.ports.inference, path, countBody({ id: 'q1', n: 40, delay: 10 }))
    await first.gotChunks(1)
    const second = new RawRequest(server.ports.inference, path, countBody({ id: 'q2', n: 3, delay: 0 }))
    await waiting(1)
    const third = new RawRequest(server.ports.inference, path, countBody({ id: 'q3', n: 3, delay: 0 }))
    await waiting(2)
    second.destroy()
    await waiting(1)
    expect((await first.done).chunks).toHaveLength(40)
    expect((await third.done).chunks).toHaveLength(3)
    const query = new RawRequest(server.ports.inference, path, {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query: 'produced', id: 'q2' }),
    })
    expect(JSON.parse((await query.done).body)).toMatchObject({ state: 'unknown', items: 0 })
  })

  async function waiting(count: number): Promise<void> {
    await server.until(
      () => server.describe('single'),
      ([single]) => single!.jobQueueStatus.pendingRequests === count,
    )
  }
})

test('cancelling one stream leaves its neighbours on the same worker alone', async () => {
  const neighbour = new RawRequest(
    server.ports.inference,
    '/predictions/count',
    countBody({ id: 'neighbour', n: 50, delay: 10 }),
  )
  const leaving = new RawRequest(
    server.ports.inference,
    '/predictions/count',
    countBody({ id: 'leaving', n: 10_000, delay: 10 }),
  )
  await Promise.all([neighbour.gotChunks(5), leaving.gotChunks(5)])
  leaving.destroy()
  const { chunks, complete } = await neighbour.done
  expect(chunks).toHaveLength(50)
  expect(complete).toBe(true)
})
