import { beforeAll, describe, expect, test } from '@jest/globals'
import { join } from 'node:path'
import { ended, produced, type Produced } from '../support/count.ts'
import { call, inferenceClient, readAll } from '../support/grpc-clients.ts'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { allStopAtOnce, stopsAtOnce, type Look } from '../support/stops-at-once.ts'
import { json, WorkflowStore } from '../support/workflows.ts'

/** A function that makes the model's order, and a model whose items stream. */
const TWO_STEPS = `
models:
  timeout-ms: 60000
  lm: {url: count}
dag:
  pass: [lm]
`
/** A slow model first: the next node must not start after its client has disconnected. */
const SLOW_FIRST = `
models:
  timeout-ms: 60000
  first: {url: count}
dag:
  first: [after]
`

let server: Server
const store = new WorkflowStore()

beforeAll(async () => {
  server = await startServer({
    modelStore: join(REPOSITORY, 'model-store'),
    config: { workflow_store: store.folder },
  })
  await store.register(server, 'story', TWO_STEPS)
  await store.register(server, 'slow', SLOW_FIRST)
})

function predict(workflow: string, value: unknown): Promise<RawResponse> {
  return rawRequest(server.ports.inference, `/wfpredict/${workflow}`, json(value))
}

function open(workflow: string, value: unknown): RawRequest {
  return new RawRequest(server.ports.inference, `/wfpredict/${workflow}`, json(value))
}

function input(workflow: string, value: unknown) {
  return { model_name: workflow, input: { data: Buffer.from(JSON.stringify(value)) } }
}

function running(model: string, id: string): Promise<Produced> {
  return server.until(
    () => produced(server, id, model),
    ({ items }) => items > 2,
  )
}

/** The requests that a model got, except those that only query its state. */
function requests(model: string): Promise<number> {
  return server.metric('ts_inference_requests_total', { model_name: model })
}

describe('a two-step workflow streams its leaf', () => {
  test('over chunked HTTP, each item as a chunk, with the head of the leaf', async () => {
    const answer = await predict('story', { id: 'http', n: 5, delay: 5 })
    expect(answer).toMatchObject({ status: 200, complete: true })
    expect(answer.headers).toMatchObject({
      'transfer-encoding': 'chunked',
      ts_stream_next: 'true',
      'content-type': 'text/plain; charset=utf-8',
    })
    expect(answer.chunks.map(String)).toEqual(['1\n', '2\n', '3\n', '4\n', '5\n'])
  })

  test('the first chunk comes while the leaf still works', async () => {
    const request = open('story', { id: 'early', n: 10_000, delay: 10 })
    await request.gotChunks(2)
    expect((await produced(server, 'early', 'story__lm')).state).toBe('running')
    request.destroy()
    await ended(server, 'early', 'story__lm')
  })

  test('over gRPC, each item as a message, as if the leaf was asked itself', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const order = { id: 'grpc', n: 5, delay: 5 }
    const workflow = await readAll(client.StreamPredictions(input('story', order)))
    const direct = await readAll(client.StreamPredictions(input('story__lm', order)))
    client.close()
    expect(workflow.error).toBeUndefined()
    const texts = workflow.messages.map(({ prediction }) => prediction.toString())
    expect(texts.slice(0, 5)).toEqual(['1\n', '2\n', '3\n', '4\n', '5\n'])
    expect(texts).toEqual(direct.messages.map(({ prediction }) => prediction.toString()))
  })

  test('over unary gRPC the items are joined', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const { prediction } = await call(client, client.Predictions, input('story', { n: 3, delay: 0 }))
    expect(prediction.toString()).toBe('1\n2\n3\n')
    client.close()
  })

  test('a slow reader slows the leaf, and only it', async () => {
    const request = open('story', { id: 'stalled', n: 3200, size: 65_536, delay: 0 })
    await request.gotChunks(1)
    request.socket.pause()
    let last = -1
    const run = await server.until(
      async () => {
        await predict('story', { n: 20, delay: 10 })
        return produced(server, 'stalled', 'story__lm')
      },
      ({ items }) => {
        const still = items === last
        last = items
        return still
      },
    )
    expect(run.state).toBe('running')
    expect(run.bytes).toBeLessThan(16 * 1024 * 1024)
    request.socket.resume()
    await request.gotChunks(run.items + 10)
    request.destroy()
    expect((await ended(server, 'stalled', 'story__lm')).state).toBe('cancelled')
  })
})

describe('a client that leaves stops at once', () => {
  const STREAM = { n: 10_000, delay: 10 }
  const WHOLE = { ...STREAM, stream: false }
  /** Long enough that its run has begun on any machine. */
  const DEADLINE_MS = 3_000

  const second: Look = (id) => produced(server, id, 'story__lm')
  const first: Look = (id) => produced(server, id, 'slow__first')

  test('the second step, over HTTP', () =>
    stopsAtOnce(second, async (id) => {
      const request = open('story', { id, ...STREAM })
      await request.gotChunks(3)
      request.destroy()
    }))

  test('the second step, over gRPC', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    await stopsAtOnce(second, async (id) => {
      const stream = client.StreamPredictions(input('story', { id, ...STREAM }))
      const result = readAll(stream)
      await new Promise<void>((resolve) => stream.once('data', () => resolve()))
      stream.cancel()
      expect((await result).error?.code).toBe(1)
      await call(client, client.Ping, {})
    })
    client.close()
  })

  test('the first step, over HTTP, and the second never starts', async () => {
    const before = await requests('slow__(functions)')
    await stopsAtOnce(first, async (id) => {
      const request = open('slow', { id, ...WHOLE })
      await running('slow__first', id)
      request.destroy()
    })
    expect(await requests('slow__(functions)')).toBe(before)
  })

  test('the first step, over gRPC, and the second never starts', async () => {
    const before = await requests('slow__(functions)')
    const client = inferenceClient(server.ports.grpcInference)
    await stopsAtOnce(first, async (id) => {
      const stream = client.StreamPredictions(input('slow', { id, ...WHOLE }))
      const result = readAll(stream)
      await running('slow__first', id)
      stream.cancel()
      expect((await result).error?.code).toBe(1)
      await call(client, client.Ping, {})
    })
    client.close()
    expect(await requests('slow__(functions)')).toBe(before)
  })

  test('the first step, when a gRPC deadline passes', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    await allStopAtOnce(first, async (ids) => {
      const deadline = Date.now() + DEADLINE_MS
      const runs = ids.map((id) =>
        readAll(client.StreamPredictions(input('slow', { id, ...WHOLE }), { deadline })),
      )
      for (const { error } of await Promise.all(runs)) expect(error?.code).toBe(4)
      await call(client, client.Ping, {})
    })
    client.close()
  })
})

test('a leaf that breaks off breaks the stream: no zero chunk, a status over gRPC', async () => {
  const request = open('story', { id: 'broken', n: 10_000, delay: 10 })
  const client = inferenceClient(server.ports.grpcInference)
  const stream = readAll(client.StreamPredictions(input('story', { id: 'broken too', n: 10_000, delay: 10 })))
  await request.gotChunks(2)
  await running('story__lm', 'broken too')
  process.kill((await server.worker('story__lm')).pid, 'SIGKILL')
  expect(await request.done).toMatchObject({ status: 200, complete: false })
  const { messages, error } = await stream
  client.close()
  expect(messages.length).toBeGreaterThan(2)
  expect(error).toMatchObject({ code: 13 })
  expect(error!.details).toContain('Error executing lm')
  await server.ready('story__lm')
})

test('every node of the workflow has its metrics, and so has the whole', async () => {
  expect(await server.metric('torchserve_ts_open_streams', { model_name: 'story' })).toBe(0)
  const cancelled = { model_name: 'story', outcome: 'cancelled' }
  expect(await server.metric('torchserve_ts_requests_ended_total', cancelled)).toBeGreaterThan(0)
  expect(await requests('story__lm')).toBeGreaterThan(0)
})
