import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { isAlive } from '../support/processes.ts'
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
import { startServer, type Server } from '../support/server.ts'

const MODELS = ['side', 'exits', 'aborts', 'killed', 'slow', 'batched']

await describePython('asyncCommunication', ({ python }) => {
  let server: Server
  let grpc: GrpcPredictor

  beforeAll(async () => {
    const own: Record<string, Record<string, unknown>> = {
      slow: { responseTimeout: 1 },
      batched: { batchSize: 2, maxBatchDelay: 10_000 },
    }
    server = await startServer({
      models: MODELS.map((name) =>
        pythonFolder(name, 'coroutine', { asyncCommunication: true, ...own[name] }),
      ),
      config: { python, drain_timeout: 600 },
    })
    await allReady(server, MODELS)
    grpc = new GrpcPredictor(server)
  }, PYTHON_MS)

  afterAll(() => grpc.close())

  test('requests run side by side, and each gets its own answer', async () => {
    const names = Array.from({ length: 20 }, (_, i) => `r${i}`)
    const answers = await Promise.all(
      names.map((name) => answerOf<{ name: string; most: number }>(server, 'side', { name, together: 20 })),
    )
    expect(answers.map(({ name }) => name)).toEqual(names)
    expect(Math.max(...answers.map(({ most }) => most))).toBe(20)
  })

  test('streams run side by side, over REST and gRPC', async () => {
    const [a, b, c] = await Promise.all([
      predict(server, 'side', { name: 'a', n: 5, ms: 20 }),
      predict(server, 'side', { name: 'b', n: 5, ms: 20 }),
      grpc.stream('side', { name: 'c', n: 5, ms: 20 }),
    ])
    const expected = (name: string): string[] => [0, 1, 2, 3, 4].map((k) => `${name}${k} `)
    expect(a.chunks.slice(0, -1).map(String)).toEqual(expected('a'))
    expect(b.chunks.slice(0, -1).map(String)).toEqual(expected('b'))
    expect(c.items.slice(0, -1)).toEqual(expected('c'))
  })

  test('large items of many streams, and responses between them, stay whole', async () => {
    const { pid } = await server.worker('side')
    const size = 100_000
    const bodies = Array.from({ length: 80 }, (_, i) => ({ name: `s${i}`, n: 1 + (i % 8), size }))
    const responses = await Promise.all(bodies.map((body) => predict(server, 'side', body)))
    for (const [i, { name, n }] of bodies.entries()) {
      const { complete, chunks } = responses[i]!
      const items = chunks.slice(0, -1).map((item) => String(item).replace(/x+$/, (all) => `${all.length}`))
      expect([complete, items]).toEqual([true, Array.from({ length: n }, (_, k) => `${name}${k} ${size}`)])
    }
    expect((await server.worker('side')).pid).toBe(pid)
  })

  test('an error goes to the request that it belongs to, and to no other', async () => {
    const running = begin(server, 'side', { name: 'running', n: 4, ms: 50 })
    await running.gotChunks(1)
    expect(errorOf(await predict(server, 'side', { op: 'throw' }))).toEqual([503, 'Prediction failed'])
    expect(errorOf(await predict(server, 'side', { op: 'reject' }))).toEqual([418, 'not this one'])
    expect(await running.done).toMatchObject({ status: 200, complete: true })
  })

  test('an item over max_response_size fails its request alone', async () => {
    const running = begin(server, 'side', { name: 'running', n: 6, ms: 50 })
    await running.gotChunks(1)
    const { pid } = await server.worker('side')
    const large = await predict(server, 'side', { name: 'large', n: 1, size: 7_000_000 })
    expect(errorOf(large)).toEqual([500, expect.stringContaining('is larger than max_response_size')])
    expect(await running.done).toMatchObject({ status: 200, complete: true })
    expect((await server.worker('side')).pid).toBe(pid)
  })

  test('a batch of several requests is one call', async () => {
    const answers = await Promise.all(['x', 'y'].map((name) => answerOf(server, 'batched', { name })))
    expect(answers).toMatchObject([
      { name: 'x', batch: 2 },
      { name: 'y', batch: 2 },
    ])
  })

  const deaths: [string, string][] = [
    ['exits', 'exit'],
    ['aborts', 'abort'],
  ]
  test.each(deaths)(
    'a worker that %s: everything that it had fails at once, and it is back',
    async (model, op) => {
      const { pid } = await server.worker(model)
      const other = begin(server, model, { name: 'other', n: 100_000, ms: 50 })
      await other.gotChunks(1)
      expect(errorOf(await predict(server, model, { op }))).toEqual([500, 'Worker died.'])
      expect((await other.done).complete).toBe(false)
      await server.until(
        () => server.worker(model),
        ({ status, pid: now }) => status === 'READY' && now !== pid,
        PYTHON_MS,
      )
      expect(await answerOf(server, model, { name: 'again' })).toMatchObject({ name: 'again' })
      expect(isAlive(pid)).toBe(false)
    },
  )

  test('a killed worker, too', async () => {
    const { pid } = await server.worker('killed')
    const running = begin(server, 'killed', { wait: 60_000 })
    await server.until(
      () => server.worker('killed'),
      ({ inFlight }) => inFlight === 1,
    )
    process.kill(pid, 'SIGKILL')
    expect(errorOf(await running.done)).toEqual([507, 'Worker died.'])
  })

  test('the response timeout holds for each request, and harms no other', async () => {
    const { pid } = await server.worker('slow')
    const lively = begin(server, 'slow', { name: 'lively', n: 30, ms: 100 })
    await lively.gotChunks(1)
    const [status, message] = errorOf(await predict(server, 'slow', { wait: 1800 }))
    expect([status, message]).toEqual([500, expect.stringContaining('no response')])
    const response = await lively.done
    expect([response.complete, response.chunks.length]).toEqual([true, 31])
    expect((await server.worker('slow')).pid).toBe(pid)
  })

  test('the server stops at once although such a worker never leaves by itself', async () => {
    const pids = await Promise.all(MODELS.map(async (model) => (await server.worker(model)).pid))
    expect(await server.stop()).toBe(0)
    expect(pids.filter(isAlive)).toEqual([])
  })
})
