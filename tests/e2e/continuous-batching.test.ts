import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { call, inferenceClient, readAll } from '../support/grpc-clients.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { RawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

let server: Server
let client: ReturnType<typeof inferenceClient>

beforeAll(async () => {
  const continuous = { continuousBatching: true, batchSize: 4, maxBatchDelay: 60_000 }
  server = await startServer({
    models: [
      modelFolder('one', 'steps', { ...continuous, minWorkers: 1, maxWorkers: 1 }),
      modelFolder('two', 'steps', { ...continuous, minWorkers: 2, maxWorkers: 2 }),
    ],
  })
  await Promise.all([server.ready('one'), server.ready('two')])
  client = inferenceClient(server.ports.grpcInference)
})

afterAll(() => client.close())

interface Body {
  name: string
  n?: number
  until?: string
  size?: number
  throwsAt?: number
  ms?: number
}

function start(model: string, body: Body): RawRequest {
  return new RawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

function predict(model: string, body: Body): Promise<RawResponse> {
  return start(model, body).done
}

function input(model: string, body: Body) {
  return { model_name: model, input: { data: Buffer.from(JSON.stringify(body)) } }
}

interface Item {
  name: string
  k: number
  step: number
  pid: number
  together: string[]
}

function items({ chunks }: { chunks: Buffer[] }): Item[] {
  return chunks.map((chunk) => JSON.parse(chunk.toString()) as Item)
}

interface Told {
  steps: number
  cached: number
  released: number
}

async function told(model: string): Promise<Told> {
  const { json } = await server.manage('GET', `/models/${model}?customized=true`)
  return (json[0] as { customizedMetadata: Told }).customizedMetadata
}

describe('a request in steps', () => {
  test('is a stream over REST, one chunk per step', async () => {
    const response = await predict('one', { name: 'a', n: 3 })
    expect(response.headers).toMatchObject({ 'transfer-encoding': 'chunked' })
    expect(items(response).map(({ k }) => k)).toEqual([1, 2, 3])
    expect(response.complete).toBe(true)
  })

  test('that ends with its first step is an ordinary answer, over REST and gRPC', async () => {
    const response = await predict('one', { name: 'a', n: 1 })
    expect(response.status).toBe(200)
    expect(response.headers).toHaveProperty('content-length')
    expect(items(response)).toHaveLength(1)
    const { prediction } = await call(client, client.Predictions, input('one', { name: 'a', n: 1 }))
    expect(JSON.parse(prediction.toString())).toMatchObject({ k: 1 })
    const { messages, error } = await readAll(client.StreamPredictions(input('one', { name: 'a', n: 1 })))
    expect([messages.length, error]).toEqual([1, undefined])
  })

  test('is a stream over gRPC, one message per step; a unary call gets all items', async () => {
    const { messages, error } = await readAll(client.StreamPredictions(input('one', { name: 'a', n: 3 })))
    expect(error).toBeUndefined()
    expect(messages.map(({ prediction }) => (JSON.parse(prediction.toString()) as Item).k)).toEqual([1, 2, 3])
    const { prediction } = await call(client, client.Predictions, input('one', { name: 'a', n: 3 }))
    expect(prediction.toString().trim().split('\n')).toHaveLength(3)
  })

  test('describe shows the mode', async () => {
    expect((await server.describe('one'))[0]).toMatchObject({ continuousBatching: true, batchSize: 4 })
  })
})

describe('steps', () => {
  test('are shared by requests that came at different times, by batchSize of them at most', async () => {
    const gate = new Gate()
    const long = start('one', { name: 'long', until: gate.path, ms: 10 })
    await long.gotChunks(3)
    const full = new Gate()
    const first = [1, 2, 3].map((i) => start('one', { name: `f${i}`, until: full.path, ms: 10 }))
    await Promise.all(first.map((one) => one.gotChunks(2)))
    const next = Array.from({ length: 6 }, (_, i) => start('one', { name: `s${i}`, n: 3, ms: 10 }))
    full.open()
    const others = await Promise.all(next.map(({ done }) => done))
    gate.open()
    const [longest, ...rest] = (await Promise.all([long, ...first].map(({ done }) => done))).map(items)
    for (const one of others.map(items)) expect(one).toHaveLength(3)
    const all = [longest!, ...rest, ...others.map(items)]
    const sizes = all.flat().map(({ together }) => together.length)
    expect(Math.max(...sizes)).toBe(4)
    expect(longest!.filter(({ together }) => together.length > 1).length).toBeGreaterThanOrEqual(7)
    expect(all[0]!.map(({ k }) => k)).toEqual(Array.from({ length: all[0]!.length }, (_, k) => k + 1))
  })

  test('of two workers go on at the same time, with and without new requests', async () => {
    const requests = [start('two', { name: 'a', n: 40, ms: 5 }), start('two', { name: 'b', n: 40, ms: 5 })]
    const all = (await Promise.all(requests.map(({ done }) => done))).map(items)
    expect(new Set(all.map(([first]) => first!.pid)).size).toBe(2)
    for (const one of all) expect(one).toHaveLength(40)
    const many = await Promise.all(
      Array.from({ length: 20 }, (_, i) => predict('two', { name: String(i), n: 10, ms: 2 })),
    )
    for (const one of many) expect(items(one)).toHaveLength(10)
    const perWorker = new Set(many.flatMap(items).map(({ pid }) => pid))
    expect(perWorker.size).toBe(2)
  })

  test('that throw fail who is in them, and who came later goes on', async () => {
    const neighbour = start('one', { name: 'neighbour', ms: 20 })
    await neighbour.gotChunks(1)
    const bad = start('one', { name: 'bad', throwsAt: 5, ms: 20 })
    await bad.gotChunks(1)
    const [one, two] = await Promise.all([bad.done, neighbour.done])
    expect([one.complete, two.complete]).toEqual([false, false])
    expect((await server.worker('one')).restarts).toBe(0)
    expect(items(await predict('one', { name: 'later', n: 3 }))).toHaveLength(3)
  })

  test('a request that fails at its first step has a proper error', async () => {
    const response = await predict('one', { name: 'bad', n: 2, throwsAt: 1 })
    expect(response.status).toBe(503)
    expect(response.body).toContain('Prediction failed')
  })
})

describe('a client that leaves', () => {
  test('takes its request out of the steps, and the others go on', async () => {
    // The failed requests of other tests may be released only now.
    const before = await server.until(
      () => told('one'),
      ({ cached }) => cached === 0,
    )
    const gate = new Gate()
    const leaving = start('one', { name: 'leaving', ms: 5 })
    await leaving.gotChunks(1)
    const staying = start('one', { name: 'staying', until: gate.path, ms: 5 })
    await staying.gotChunks(2)
    leaving.destroy()
    await server.until(
      () => server.worker('one'),
      ({ inFlight }) => inFlight === 1,
    )
    await staying.gotChunks(staying.chunks.length + 2)
    gate.open()
    const all = items(await staying.done)
    expect(all[1]!.together).toContain('leaving')
    expect(all.at(-1)!.together).toEqual(['staying'])
    await server.until(
      () => told('one'),
      ({ cached, released }) => cached === 0 && released === before.released + 2,
    )
    expect((await server.worker('one')).inFlight).toBe(0)
  })

  test('over gRPC as well', async () => {
    const stream = client.StreamPredictions(input('one', { name: 'leaving' }))
    await new Promise<void>((resolve) => stream.once('data', () => resolve()))
    const read = readAll(stream)
    stream.cancel()
    await read
    await server.until(
      () => server.worker('one'),
      ({ inFlight }) => inFlight === 0,
    )
  })
})

test('a client that does not read stays out of the steps, its neighbour goes on', async () => {
  const slow = start('one', { name: 'slow', n: 400, size: 50_000 })
  await slow.gotChunks(1)
  slow.socket.pause()
  // 400 items of 50 kB exceed sockets and window: at some time, when the kernel's buffers are full, the steps
  // continue without this request.
  const fast = async (): Promise<number[]> => {
    const answer = items(await predict('one', { name: 'fast', n: 50 }))
    return answer.map(({ together }) => together.length)
  }
  const alone = await server.until(fast, (sizes) => sizes.every((size) => size === 1))
  expect(alone).toHaveLength(50)
  slow.socket.resume()
  const all = await slow.done
  expect(all.complete).toBe(true)
  expect(items(all).map(({ k }) => k)).toEqual(Array.from({ length: 400 }, (_, k) => k + 1))
})
