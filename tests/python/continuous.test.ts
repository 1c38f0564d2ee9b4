import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import {
  allReady,
  answerOf,
  begin,
  errorOf,
  GrpcPredictor,
  predict,
  PYTHON_MS,
} from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import type { RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

interface Item {
  name: string
  k: number
  together: string[]
}

function items({ chunks }: { chunks: Buffer[] }): Item[] {
  return chunks.map((chunk) => JSON.parse(chunk.toString()) as Item)
}

await describePython('Continuous batching of Python handlers', ({ python }) => {
  let server: Server
  let grpc: GrpcPredictor

  beforeAll(async () => {
    server = await startServer({
      models: [
        pythonFolder('steps', 'steps', { continuousBatching: true, batchSize: 3, maxBatchDelay: 60_000 }),
        pythonFolder('small', 'steps', { continuousBatching: true, batchSize: 2, streamWindowSize: 1024 }),
      ],
      config: { python, max_response_size: 100_000 },
    })
    await allReady(server, ['steps', 'small'])
    grpc = new GrpcPredictor(server)
  }, PYTHON_MS)

  afterAll(() => grpc.close())

  const ask = (body: Record<string, unknown>): Promise<RawResponse> => predict(server, 'steps', body)

  async function told(): Promise<{ alone: number; left: string[]; steps: number }> {
    const { json } = await server.manage('GET', '/models/steps?customized=true')
    return (json[0] as { customizedMetadata: { alone: number; left: string[]; steps: number } })
      .customizedMetadata
  }

  test('one chunk for each step, over REST and gRPC', async () => {
    const response = await ask({ name: 'a', n: 3 })
    expect(items(response).map(({ k }) => k)).toEqual([1, 2, 3])
    expect(response.complete).toBe(true)
    const { items: messages, code } = await grpc.stream('steps', { name: 'g', n: 3 })
    expect([messages.length, code]).toEqual([3, undefined])
  })

  test('a request that ends with its first step, and one without marks, are ordinary answers', async () => {
    for (const body of [
      { name: 'a', n: 1 },
      { name: 'b', whole: true },
    ]) {
      const { status, headers, complete } = await ask(body)
      expect([status, complete, headers['transfer-encoding']]).toEqual([200, true, undefined])
    }
  })

  test('requests join and leave between steps; the input of each comes once', async () => {
    const gate = new Gate()
    const long = begin(server, 'steps', { name: 'long', until: gate.path, ms: 50 })
    await long.gotChunks(2)
    const short = items(await ask({ name: 'short', n: 2 }))
    await long.gotChunks(long.chunks.length + 2)
    gate.open()
    expect(short.map(({ together }) => together)).toEqual(Array(2).fill(['long', 'short']))
    const alone = items(await long.done).map(({ together }) => together.join())
    expect([alone[0], alone.at(-1)]).toEqual(['long', 'long'])
    expect(alone.filter((each) => each === 'long,short')).toHaveLength(2)
  })

  test('at most batchSize requests share a step', async () => {
    const all = await Promise.all(['a', 'b', 'c', 'd'].map((name) => ask({ name, n: 3, ms: 20 })))
    for (const response of all) {
      expect(response.complete).toBe(true)
      for (const { together } of items(response)) expect(together.length).toBeLessThanOrEqual(3)
    }
  })

  test('a client that leaves is missing in the next step, and its neighbour goes on', async () => {
    const leaver = begin(server, 'steps', { name: 'leaver', n: 1_000_000, ms: 20 })
    const gate = new Gate()
    const stayer = begin(server, 'steps', { name: 'stayer', until: gate.path, ms: 20 })
    await Promise.all([leaver.gotChunks(3), stayer.gotChunks(3)])
    leaver.destroy()
    await server.until(
      () => server.worker('steps'),
      ({ inFlight }) => inFlight === 1,
    )
    await stayer.gotChunks(stayer.chunks.length + 2)
    gate.open()
    const response = await stayer.done
    expect(response.complete).toBe(true)
    expect(items(response).at(-1)!.together).toEqual(['stayer'])
    expect((await told()).left).toEqual(['leaver'])
  })

  test('when the last client leaves the handler is left alone', async () => {
    const only = begin(server, 'steps', { name: 'only', n: 1000, ms: 20 })
    await only.gotChunks(2)
    only.destroy()
    await server.until(
      () => server.worker('steps'),
      ({ inFlight }) => inFlight === 0,
    )
    const { steps } = await told()
    expect((await told()).steps).toBe(steps)
  })

  test('a describe is asked alone, while no request runs', async () => {
    const running = begin(server, 'steps', { name: 'r', n: 5, ms: 50 })
    await running.gotChunks(1)
    expect((await told()).alone).toBe(1)
    expect((await running.done).complete).toBe(true)
  })

  test('a step that throws fails the requests in it; the next ones are served', async () => {
    const running = begin(server, 'steps', { name: 'good', n: 1_000_000, ms: 20 })
    await running.gotChunks(1)
    const bad = await ask({ name: 'bad', n: 50, throw_at: 3 })
    const good = await running.done
    expect([good.complete, bad.complete, bad.chunks.length]).toEqual([false, false, 2])
    expect(errorOf(await ask({ name: 'first', n: 3, throw_at: 1 }))).toEqual([503, 'Prediction failed'])
    expect(items(await ask({ name: 'next', n: 2 }))).toHaveLength(2)
    expect((await server.worker('steps')).restarts).toBe(0)
  })

  test('a reader that stands does not hold up its neighbour, and fails when too much has piled up', async () => {
    const stalled = begin(server, 'small', { name: 'stalled', n: 100_000, size: 20_000 })
    await stalled.gotChunks(1)
    stalled.socket.pause()
    const neighbour = begin(server, 'small', { name: 'neighbour', n: 1500, size: 0 })
    expect((await neighbour.done).chunks).toHaveLength(1500)
    stalled.socket.resume()
    expect((await stalled.done).complete).toBe(false)
    expect(await answerOf(server, 'small', { name: 'after', n: 1 })).toMatchObject({ together: ['after'] })
  })
})

await describePython('Sequences of Python handlers', ({ python }) => {
  let server: Server

  beforeAll(async () => {
    const sequences = {
      sequenceBatching: true,
      sequenceMaxIdleMSec: 10_000,
      maxNumSequence: 4,
      batchSize: 2,
      maxBatchDelay: 50,
    }
    server = await startServer({
      models: [
        pythonFolder('sums', 'stateful', {
          ...sequences,
          minWorkers: 2,
          maxWorkers: 2,
          maxSequenceJobQueueSize: 10,
        }),
      ],
      config: { python, ts_header_key_sequence_id: 'my-sequence', ts_header_key_sequence_start: 'my-start' },
    })
    await allReady(server, ['sums'])
  }, PYTHON_MS)

  interface Sum {
    sequence: string
    sum: number
    pid: number
  }

  async function add(value: number, sequence?: string): Promise<Sum & { id: string | undefined }> {
    const { status, body, headers } = await predict(
      server,
      'sums',
      value,
      sequence === undefined ? {} : { 'my-sequence': sequence },
    )
    if (status !== 200) throw new Error(`${status}: ${body}`)
    return { ...(JSON.parse(body) as Sum), id: headers['my-sequence'] }
  }

  test('stay with one worker, which knows the headers by their configured names', async () => {
    const sums = async (sequence: string): Promise<Sum[]> => {
      const all: Sum[] = []
      for (const value of [1, 2, 3]) all.push(await add(value, sequence))
      return all
    }
    const [a, b] = await Promise.all([sums('a'), sums('b')])
    for (const [name, all] of [
      ['a', a],
      ['b', b],
    ] as const) {
      expect(all.map(({ sequence, sum }) => [sequence, sum])).toEqual([
        [name, 1],
        [name, 3],
        [name, 6],
      ])
      expect(new Set(all.map(({ pid }) => pid)).size).toBe(1)
    }
  })

  test('without an id get one of the server, which starts them', async () => {
    const { id, sequence, sum } = await add(5)
    expect(id).toMatch(/^ts-seq-/)
    expect([sequence, sum]).toEqual([id, 5])
    expect((await add(6, id)).sum).toBe(11)
  })
})
