import { once } from 'node:events'
import { afterEach, beforeEach, describe, expect, test } from '@jest/globals'
import { status as Status } from '@grpc/grpc-js'
import { call, readAll, type GrpcError } from '../../support/grpc-clients.ts'
import { RawClient } from './raw-client.ts'
import {
  DEADLINE_MS,
  failure,
  predictWith,
  REQUEST,
  startGrpc,
  streamWith,
  type RunningGrpc,
} from './start-grpc.ts'

/** Generous for a busy machine; what is measured takes a few milliseconds. */
const BOUND_MS = 30_000

let grpc: RunningGrpc

beforeEach(async () => {
  grpc = await startGrpc()
  // The connection stands before any deadline runs.
  await call(grpc.inference, grpc.inference.Ping, {})
})

afterEach(() => grpc.close())

/** Fails when the work does not come to its end in time. */
async function soon<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`Not within ${BOUND_MS} ms`)), BOUND_MS)
  })
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

describe('a client that cancels', () => {
  test('a unary call', async () => {
    const working = grpc.models.nextWork()
    let running!: { cancel(): void }
    const error = new Promise<GrpcError>((resolve) => {
      running = grpc.inference.Predictions(REQUEST, (got: GrpcError | null) => resolve(got!))
    })
    const work = await working
    running.cancel()
    expect(await soon(work.abandoned)).toBe('client left')
    expect(work.job.outcome).toBe('cancelled')
    expect((await error).code).toBe(Status.CANCELLED)
  })

  test('a stream before its first item, and one after it', async () => {
    for (const items of [0, 3]) {
      const working = grpc.models.nextWork()
      const reading = streamWith(grpc, REQUEST)
      const ended = readAll(reading)
      const work = await working
      for (let item = 0; item < items; item++) work.respond('item', true)
      reading.cancel()
      expect(await soon(work.abandoned)).toBe('client left')
      expect(work.respond('late', true)).toBe(true)
      expect((await ended).error?.code).toBe(Status.CANCELLED)
    }
  })

  test('leaves the other calls of its connection alone', async () => {
    const first = grpc.models.nextWork()
    const cancelled = streamWith(grpc, REQUEST)
    const cancelledEnd = readAll(cancelled)
    const firstWork = await first
    const second = grpc.models.nextWork()
    const other = readAll(streamWith(grpc, REQUEST))
    const secondWork = await second
    cancelled.cancel()
    await soon(firstWork.abandoned)
    await cancelledEnd
    secondWork.respond('still here', true)
    secondWork.respond('', false)
    expect((await other).messages).toHaveLength(1)
    expect(secondWork.abandonReason).toBeUndefined()
  })
})

describe('a deadline', () => {
  test('that passes in a unary call', async () => {
    const working = grpc.models.nextWork()
    const error = failure(predictWith(grpc, REQUEST, { deadline: Date.now() + DEADLINE_MS }))
    expect(await soon((await working).abandoned)).toBe('deadline')
    expect((await error).code).toBe(Status.DEADLINE_EXCEEDED)
  })

  test('that passes in a stream after some items', async () => {
    const working = grpc.models.nextWork()
    const ended = readAll(streamWith(grpc, REQUEST, { deadline: Date.now() + DEADLINE_MS }))
    const work = await working
    work.respond('item', true)
    expect(await soon(work.abandoned)).toBe('deadline')
    expect(work.job.outcome).toBe('timed_out')
    expect((await ended).error?.code).toBe(Status.DEADLINE_EXCEEDED)
  })

  test('counts for a client that does not read, which still gets the status when it does', async () => {
    const working = grpc.models.nextWork()
    const client = new RawClient(grpc.port)
    const reading = client.stream({ 'grpc-timeout': `${DEADLINE_MS}m` })
    const trailers = once(reading, 'trailers')
    const work = await working
    for (let item = 0; item < 20; item++) work.respond(Buffer.alloc(32_768), true)
    expect(await soon(work.abandoned)).toBe('deadline')
    reading.resume()
    expect((await soon(trailers))[0]).toMatchObject({ 'grpc-status': String(Status.DEADLINE_EXCEEDED) })
    await client.close()
  })

  test('that does not pass changes nothing', async () => {
    const { messages } = await readAll(streamWith(grpc, REQUEST, { deadline: Date.now() + 60_000 }))
    expect(messages).toHaveLength(1)
    expect(grpc.models.works[0]!.abandonReason).toBeUndefined()
  })
})

describe('a lost connection', () => {
  test.each(['Predictions', 'StreamPredictions'])('reaches the handler of %s', async (rpc) => {
    const working = grpc.models.nextWork()
    const client = new RawClient(grpc.port)
    client.call(rpc, {})
    const work = await working
    await client.close()
    expect(await soon(work.abandoned)).toBe('client left')
  })

  test('a forced shutdown breaks running calls and stops their handlers', async () => {
    const working = grpc.models.nextWork()
    const reading = readAll(streamWith(grpc, REQUEST))
    const work = await working
    work.respond('item', true)
    grpc.servers.forceShutdown()
    expect(await soon(work.abandoned)).toBe('client left')
    expect((await soon(reading)).error).toBeDefined()
  })
})

test('a normal end of any kind is no cancellation', async () => {
  await predictWith(grpc, REQUEST)
  await readAll(streamWith(grpc, REQUEST))
  grpc.models.onWork = (work) => {
    work.respond('a', true)
    work.respond('', false)
  }
  await readAll(streamWith(grpc, REQUEST))
  // grpc-js has said `cancelled` to all three when another whole call has gone by.
  await call(grpc.inference, grpc.inference.Ping, {})
  expect(grpc.models.works.map((work) => [work.abandonReason, work.job.outcome])).toEqual([
    [undefined, 'finished'],
    [undefined, 'finished'],
    [undefined, 'finished'],
  ])
})
