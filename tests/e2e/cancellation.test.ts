import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput, ended, now, produced } from '../support/count.ts'
import { inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'

/** What the contract allows between a client's leaving and the handler's stop. */
const LIMIT_MS = 100

let server: Server

beforeAll(async () => {
  // A second name with one slot, so that requests have to queue.
  server = await startServer({
    models: [COUNT, `single=${join(REPOSITORY, 'tests/support/handlers/single-slot-count')}`],
  })
  await Promise.all([server.ready('count'), server.ready('single')])
})

/** The run was cancelled, no later than the limit after `left`, and made nothing after its end. */
async function stoppedInTime(id: string, left: number): Promise<void> {
  const run = await ended(server, id)
  expect(run.state).toBe('cancelled')
  expect(run.endedAt! - left).toBeLessThan(LIMIT_MS)
  expect(run.lastItemAt!).toBeLessThanOrEqual(run.endedAt!)
  expect((await produced(server, id)).items).toBe(run.items)
}

describe('the handler stops within 100 ms when', () => {
  test('an HTTP client cuts its connection in mid-stream', async () => {
    const request = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'cut', n: 10_000, delay: 10 }),
    )
    await request.gotChunks(3)
    const left = now()
    request.destroy()
    await stoppedInTime('cut', left)
  })

  test('curl --max-time ends', async () => {
    const args = [
      '-sN',
      '--max-time',
      '0.5',
      '-H',
      'content-type: application/json',
      '-d',
      '{"id":"curl","n":10000,"delay":10}',
    ]
    const url = `http://127.0.0.1:${server.ports.inference}/predictions/count`
    const lines = await new Promise<string>((resolve) => {
      execFile('curl', [...args, url], (_error, stdout) => {
        resolve(stdout)
      })
    })
    const left = now()
    expect(lines).toContain('1\n2\n3\n')
    await stoppedInTime('curl', left)
  })

  test('a unary client leaves', async () => {
    const request = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'unary', n: 10_000, delay: 10, stream: false }),
    )
    await server.until(
      () => produced(server, 'unary'),
      ({ items }) => items > 2,
    )
    const left = now()
    request.destroy()
    await stoppedInTime('unary', left)
  })

  test('a client half-closes', async () => {
    const request = new RawRequest(
      server.ports.inference,
      '/predictions/count',
      countBody({ id: 'half', n: 10_000, delay: 10 }),
    )
    await request.gotChunks(2)
    const left = now()
    request.socket.end()
    await stoppedInTime('half', left)
  })

  test('a gRPC call is cancelled', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const stream = client.StreamPredictions(countInput({ id: 'grpc-cancel', n: 10_000, delay: 10 }))
    const result = readAll(stream)
    await new Promise<void>((resolve) => stream.once('data', () => resolve()))
    const left = now()
    stream.cancel()
    await stoppedInTime('grpc-cancel', left)
    expect((await result).error?.code).toBe(1)
    client.close()
  })

  test('a gRPC deadline passes', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const deadline = Date.now() + 300
    const { error, messages } = await readAll(
      client.StreamPredictions(countInput({ id: 'grpc-deadline', n: 10_000, delay: 10 }), { deadline }),
    )
    expect(error?.code).toBe(4)
    expect(messages.length).toBeGreaterThan(2)
    await stoppedInTime('grpc-deadline', deadline)
    client.close()
  })

  test('a gRPC unary call is cancelled', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    let code: number | undefined
    const unary = client.Predictions(
      countInput({ id: 'grpc-unary', n: 10_000, delay: 10, stream: false }),
      (error) => {
        code = error?.code
      },
    )
    await server.until(
      () => produced(server, 'grpc-unary'),
      ({ items }) => items > 2,
    )
    const left = now()
    unary.cancel()
    await stoppedInTime('grpc-unary', left)
    expect(code).toBe(1)
    client.close()
  })
})

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
      () => server.manage('GET', '/models/single'),
      ({ json }) => json[0].jobQueueStatus.pendingRequests === count,
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
