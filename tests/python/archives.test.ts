import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { join } from 'node:path'
import { inferenceClient, type PredictionResponse } from '../support/grpc-clients.ts'
import { packPython } from '../support/python/archive.ts'
import { EXCHANGES, exchange, exchangeName } from '../support/python/exchanges.ts'
import { PYTHON_MODELS } from '../support/python/models.ts'
import { readRecording } from '../support/python/recording.ts'
import { describePython } from '../support/python/test-python.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

await describePython('archives of the real torch-model-archiver', (python) => {
  let server: Server

  beforeAll(async () => {
    const store = join(tempDir(), 'store')
    await Promise.all(PYTHON_MODELS.map((model) => packPython(python, store, model)))
    server = await startServer({ modelStore: store, models: ['all'], config: { python: python.python } })
    for (const { name } of PYTHON_MODELS) await server.until(() => server.describe(name), ready)
  })

  // A worker of coroutines would stay when its server is killed.
  afterAll(() => server.stop())

  test.each(EXCHANGES.map((request) => [exchangeName(request), request] as const))(
    '%s is answered as TorchServe answers it',
    async (name, request) => {
      expect(await exchange(request, server.ports)).toEqual(readRecording()[name])
    },
  )

  // It must be full, because its delay is longer than a test may take.
  test('requests that come together are one batch', async () => {
    const bodies = ['a', 'b', 'c', 'd']
    const answers = await Promise.all(
      bodies.map((body) =>
        rawRequest(server.ports.inference, '/predictions/batches', {
          body: JSON.stringify(body),
          headers: { 'content-type': 'application/json' },
        }),
      ),
    )
    expect(answers.map(({ body }) => (JSON.parse(body) as { value: string }).value)).toEqual(bodies)
  })

  test('coroutines run side by side, and an error reaches its own request alone', async () => {
    const ask = (wish: object) =>
      rawRequest(server.ports.inference, '/predictions/slowly', {
        body: JSON.stringify(wish),
        headers: { 'content-type': 'application/json' },
      })
    const slow = ask({ seconds: 1.5 })
    const failed = await ask({ seconds: 0, raise: true })
    const quick = await ask({ seconds: 0 })
    expect([failed.status, quick.status]).toEqual([503, 200])
    expect((await slow).status).toBe(200)
  })

  test('continuous batches take requests in while others run', async () => {
    const ask = (steps: number) =>
      rawRequest(server.ports.inference, '/predictions/steps', { body: String(steps) })
    const answers = await Promise.all([ask(6), ask(3), ask(1)])
    expect(answers.map(({ chunks }) => chunks.length)).toEqual([6, 3, 1])
  })

  test('gRPC sequences reach the worker that has their sum', async () => {
    const client = inferenceClient(server.ports.grpcInference)
    const duplex = client.StreamPredictions2()
    const sums: string[] = []
    for (const value of ['1', '2', '4']) {
      const answered = new Promise<PredictionResponse>((resolve, reject) => {
        duplex.once('data', (got) => resolve(got as PredictionResponse))
        duplex.once('error', (error) => reject(new Error('The stream failed', { cause: error })))
      })
      duplex.write({ model_name: 'sums', sequence_id: 'g', input: { data: Buffer.from(value) } })
      sums.push((await answered).prediction.toString())
    }
    expect(sums).toEqual(['1', '3', '7'])
    duplex.end()
    client.close()
  })

  // TorchServe ends the first with `Worker died.` after its response, and never answers the second.
  test('gRPC streams also what needs no stream, and continuous batches', async () => {
    const body = '{"wish": "greet"}'
    expect(await exchange({ model: 'answers', over: 'grpc-stream', body }, server.ports)).toEqual({
      status: 0,
      parts: ['hello'],
    })
    expect(await exchange({ model: 'steps', over: 'grpc-stream', body: '2' }, server.ports)).toEqual({
      status: 0,
      parts: ['left 1 ', 'left 0 '],
    })
  })
})

function ready(versions: readonly { workers: readonly { status: string }[] }[]): boolean {
  return versions[0]!.workers.length > 0 && versions[0]!.workers.every(({ status }) => status === 'READY')
}
