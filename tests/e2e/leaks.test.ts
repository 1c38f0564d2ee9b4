import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { COUNT, countBody, countInput } from '../support/count.ts'
import { inferenceClient } from '../support/grpc-clients.ts'
import { RawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { join } from 'node:path'

const STREAMS = 10_000
const AT_ONCE = 50
const LIMIT_BYTES = 5 * 1024 * 1024

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [COUNT],
    nodeArgs: ['--expose-gc', '--import', join(REPOSITORY, 'tests/support/heap-probe.mjs')],
  })
  await server.ready('count')
})

/** What the frontend's heap holds after a collection. */
async function heapBytes(): Promise<number> {
  const seen = server.output.length
  process.kill(server.pid, 'SIGUSR2')
  const line = await server.until(
    () => Promise.resolve(server.output.slice(seen).find((text) => text.startsWith('heap-probe'))),
    (text) => text !== undefined,
  )
  return Number(line!.split(' ')[1])
}

async function cancelledHttpStream(): Promise<void> {
  const request = new RawRequest(
    server.ports.inference,
    '/predictions/count',
    countBody({ id: 'x', n: 1000, delay: 50 }),
  )
  await request.gotChunks(1)
  request.destroy()
  await request.done
}

/**
 * Node's HTTP/2 closes a connection that cancels over a thousand streams in a burst, so each client has a few
 * hundred.
 */
const STREAMS_PER_CLIENT = 400
let client: ReturnType<typeof inferenceClient>
let grpcStreams = 0

async function cancelledGrpcStream(): Promise<void> {
  if (grpcStreams++ % STREAMS_PER_CLIENT === 0) {
    clients.push((client = inferenceClient(server.ports.grpcInference)))
  }
  const stream = client.StreamPredictions(countInput({ id: 'y', n: 1000, delay: 50 }))
  await new Promise<void>((resolve) => {
    stream.on('error', () => {
      resolve()
    })
    stream.once('data', () => {
      stream.cancel()
    })
  })
}

const clients: (typeof client)[] = []
afterAll(() => {
  for (const each of clients) each.close()
})

async function cancelMany(count: number): Promise<void> {
  let started = 0
  const lane = async (): Promise<void> => {
    while (started++ < count) await (started % 2 === 0 ? cancelledHttpStream() : cancelledGrpcStream())
  }
  await Promise.all(Array.from({ length: AT_ONCE }, lane))
}

test('10,000 cancelled streams leave the heap as it was and every gauge at zero', async () => {
  await cancelMany(1000)
  await allZero()
  const before = await heapBytes()
  await cancelMany(STREAMS)
  await allZero()
  expect((await heapBytes()) - before).toBeLessThan(LIMIT_BYTES)
  const cancelled = await server.metric('torchserve_ts_requests_ended_total', { outcome: 'cancelled' })
  expect(cancelled).toBe(STREAMS + 1000)
}, 180_000)

async function allZero(): Promise<void> {
  for (const gauge of ['open_requests', 'open_streams', 'queue_depth']) {
    await server.until(
      () => server.metric(`torchserve_ts_${gauge}`),
      (value) => value === 0,
    )
  }
  await server.until(
    () => server.worker('count'),
    ({ inFlight }) => inFlight === 0,
  )
}
