import { afterAll, beforeAll, describe, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import { allReady, answerOf, begin, GrpcPredictor, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'

await describePython('Streams of Python handlers', ({ python }) => {
  let server: Server
  let grpc: GrpcPredictor

  beforeAll(async () => {
    server = await startServer({
      models: [
        pythonFolder('ops', 'ops', { cancelGraceMs: 60_000 }),
        pythonFolder('batched', 'ops', { batchSize: 2, maxBatchDelay: 10_000 }),
        pythonFolder('limited', 'ops'),
        pythonFolder('patient', 'ops', {
          ...{ responseTimeout: 1, gapTimeout: 30, firstResponseTimeout: 30, cancelGraceMs: 60_000 },
        }),
      ],
      config: { python, metrics_mode: 'prometheus', python_cancel_grace_ms: 300 },
    })
    await allReady(server, ['ops', 'batched', 'limited', 'patient'])
    grpc = new GrpcPredictor(server)
  }, PYTHON_MS)

  afterAll(() => grpc.close())

  test('REST: a chunk for each frame', async () => {
    const request = begin(server, 'ops', { op: 'stream', n: 3, ms: 100 })
    await request.gotChunks(1)
    expect(String(request.chunks[0])).toBe('0:')
    const response = await request.done
    expect(response.chunks.map(String)).toEqual(['0:', '1:', '2:', 'last'])
    expect(response).toMatchObject({ status: 200, complete: true })
    expect(response.headers).toMatchObject({ 'transfer-encoding': 'chunked', ts_stream_next: 'true' })
  })

  test('gRPC: a message for each frame; Predictions joins them', async () => {
    expect(await grpc.stream('ops', { op: 'stream', n: 3 })).toEqual({
      items: ['0:', '1:', '2:', 'last'],
      code: undefined,
    })
    expect(await grpc.unary('ops', { op: 'stream', n: 2 })).toBe('0:1:last')
  })

  test('many items are all there, in their order', async () => {
    const { chunks } = await predict(server, 'ops', { op: 'stream', n: 2000 })
    expect(chunks.slice(0, -1).map(String)).toEqual(Array.from({ length: 2000 }, (_, k) => `${k}:`))
  })

  test('large items are all there', async () => {
    const { body, complete } = await predict(server, 'ops', { op: 'stream', n: 5, size: 3_000_000 })
    expect([complete, body.length]).toEqual([true, 5 * 3_000_002 + 4])
  })

  test('of a batch: each client has its own', async () => {
    const ask = () => predict(server, 'batched', { op: 'stream', n: 2 })
    const [one, two] = await Promise.all([ask(), ask()])
    // The handler processes the requests of its batch one by one, and sends to all of them each time.
    for (const { chunks } of [one, two]) expect(chunks.map(String)).toEqual(['0:', '1:', '0:', '1:', 'last'])
  })

  describe('a client that leaves', () => {
    test('the handler goes on, what it sends is thrown away and counted, and the worker serves the next', async () => {
      const discarded = () => server.metric('torchserve_ts_discarded_responses_total', { model_name: 'ops' })
      const before = await discarded()
      const request = begin(server, 'ops', { op: 'stream', n: 30, ms: 50 })
      await request.gotChunks(1)
      request.destroy()
      await answerOf(server, 'ops', { op: 'echo' })
      const count = (await discarded()) - before
      expect(count).toBeGreaterThan(3)
      expect(count).toBeLessThanOrEqual(30)
      expect((await server.worker('ops')).restarts).toBe(0)
    })

    test('over gRPC, too', async () => {
      const discarded = () => server.metric('torchserve_ts_discarded_responses_total', { model_name: 'ops' })
      const before = await discarded()
      const stream = grpc.begin('ops', { op: 'stream', n: 30, ms: 50 })
      stream.on('error', () => undefined)
      await new Promise((resolve) => stream.once('data', resolve))
      stream.cancel()
      await answerOf(server, 'ops', { op: 'echo' })
      expect((await discarded()) - before).toBeGreaterThan(3)
    })

    test('while its request waits: the handler never sees it', async () => {
      const gate = new Gate()
      const running = begin(server, 'ops', { op: 'stream', n: 1, until: gate.path })
      await running.gotChunks(1)
      const waiting = begin(server, 'ops', { op: 'metric', value: 1 })
      await server.until(
        () => server.describe('ops'),
        ([version]) => version!.jobQueueStatus.pendingRequests === 1,
      )
      waiting.destroy()
      await server.until(
        () => server.describe('ops'),
        ([version]) => version!.jobQueueStatus.pendingRequests === 0,
      )
      gate.open()
      await running.done
      await answerOf(server, 'ops', { op: 'echo' })
      expect(server.output.some((line) => line.includes('a line of the handler'))).toBe(false)
    })

    test('with a limit: a handler that goes on for longer is started again', async () => {
      const { pid } = await server.worker('limited')
      const request = begin(server, 'limited', { op: 'stream', n: 1000, ms: 20 })
      await request.gotChunks(1)
      request.destroy()
      const { lastExit } = await server.until(
        () => server.worker('limited'),
        ({ status, pid: now }) => status === 'READY' && now !== pid,
        PYTHON_MS,
      )
      expect(lastExit!.reason).toBe(
        'Killed: a cancelled request ran for longer than 300 ms; the worker is restarted',
      )
    })

    test('a handler that gives no sign for the response timeout is started again; one that does is not', async () => {
      const { pid } = await server.worker('patient')
      const lively = begin(server, 'patient', { op: 'stream', n: 16, ms: 150 })
      await lively.gotChunks(1)
      lively.destroy()
      expect(await answerOf(server, 'patient', { op: 'echo' })).toEqual({ op: 'echo' })
      expect((await server.worker('patient')).pid).toBe(pid)
      const silent = begin(server, 'patient', { op: 'stream', n: 2, ms: 60_000 })
      await silent.gotChunks(1)
      silent.destroy()
      const { lastExit } = await server.until(
        () => server.worker('patient'),
        ({ status, pid: now }) => status === 'READY' && now !== pid,
        PYTHON_MS,
      )
      expect(lastExit!.reason).toContain('sent nothing for 1000 ms')
    })
  })
})
