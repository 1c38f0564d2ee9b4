import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, now, produced } from '../support/count.ts'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { stopsInTime as inTime } from '../support/stops-in-time.ts'

let server: Server

beforeAll(async () => {
  // A second name with one slot, so that requests have to queue.
  server = await startServer({
    models: [COUNT, `single=${join(REPOSITORY, 'tests/support/handlers/single-slot-count')}`],
  })
  await Promise.all([server.ready('count'), server.ready('single')])
})

const stopsInTime = (leave: (id: string, patience: number) => Promise<number>): Promise<void> =>
  inTime(server, (id) => produced(server, id), leave)

/** It left before it had seen anything, which is no try. */
const TOO_SOON = -Infinity

const STREAM = { n: 10_000, delay: 10 }

describe('the handler stops within 100 ms when', () => {
  test('an HTTP client cuts its connection in mid-stream', () =>
    stopsInTime(async (id) => {
      const request = new RawRequest(
        server.ports.inference,
        '/predictions/count',
        countBody({ id, ...STREAM }),
      )
      await request.gotChunks(3)
      request.destroy()
      return now()
    }))

  test('curl --max-time ends', () =>
    stopsInTime(async (id, patience) => {
      const lines = await curl(String(0.5 * patience), JSON.stringify({ id, ...STREAM }))
      return /^1\n2\n3\n/.test(lines) ? now() : TOO_SOON
    }))

  test('a unary client leaves', () =>
    stopsInTime(async (id) => {
      const run = { id, ...STREAM, stream: false }
      const request = new RawRequest(server.ports.inference, '/predictions/count', countBody(run))
      await someItems(id)
      request.destroy()
      return now()
    }))

  test('a client half-closes', () =>
    stopsInTime(async (id) => {
      const request = new RawRequest(
        server.ports.inference,
        '/predictions/count',
        countBody({ id, ...STREAM }),
      )
      await request.gotChunks(2)
      request.socket.end()
      return now()
    }))

  test('a gRPC call is cancelled', () =>
    stopsInTime(async (id) => {
      const client = inferenceClient(server.ports.grpcInference)
      const stream = client.StreamPredictions(countInput({ id, ...STREAM }))
      const result = readAll(stream)
      await new Promise<void>((resolve) => stream.once('data', () => resolve()))
      const left = now()
      stream.cancel()
      expect((await result).error?.code).toBe(1)
      client.close()
      return left
    }))

  test('a gRPC deadline passes', () =>
    stopsInTime(async (id, patience) => {
      const client = inferenceClient(server.ports.grpcInference)
      const deadline = Date.now() + 1000 * patience
      const { error, messages } = await readAll(
        client.StreamPredictions(countInput({ id, ...STREAM }), { deadline }),
      )
      expect(error?.code).toBe(4)
      client.close()
      return messages.length > 2 ? deadline : TOO_SOON
    }))

  test('a gRPC unary call is cancelled', () =>
    stopsInTime(async (id) => {
      const client = inferenceClient(server.ports.grpcInference)
      const code = new Promise<number | undefined>((resolve) => {
        const unary = client.Predictions(countInput({ id, ...STREAM, stream: false }), (error) => {
          resolve(error?.code)
        })
        void someItems(id).then(() => {
          unary.cancel()
        })
      })
      expect(await code).toBe(1)
      const left = now()
      client.close()
      return left
    }))
})

function someItems(id: string): Promise<unknown> {
  return server.until(
    () => produced(server, id),
    ({ items }) => items > 2,
  )
}

function curl(maxTime: string, body: string): Promise<string> {
  const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
  const args = ['-sN', '--max-time', maxTime, '-H', 'content-type: application/json', '-d', body, url]
  return new Promise((resolve) => {
    execFile('curl', args, (_error, stdout) => {
      resolve(stdout)
    })
  })
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
