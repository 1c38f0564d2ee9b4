import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { join } from 'node:path'
import { packPython } from '../support/python/archive.ts'
import { exchange, exchangeName } from '../support/python/exchanges.ts'
import { readRecording } from '../support/python/recording.ts'
import { describePython } from '../support/python/test-python.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'
import { packTorchModels, RANKS, TORCH_EXCHANGES } from './models.ts'
import { execa } from '../support/tools.ts'

await describePython('archives that need PyTorch', (python) => {
  let server: Server

  beforeAll(async () => {
    const store = join(tempDir(), 'store')
    const names = [...(await packTorchModels(python, store)), RANKS.name]
    await packPython(python, store, RANKS)
    server = await startServer({ modelStore: store, models: ['all'], config: { python: python.python } })
    for (const name of names) await loaded(name)
  }, 240_000)

  async function loaded(name: string): Promise<void> {
    await server.until(
      () => server.worker(name),
      (worker) => worker?.status === 'READY',
      180_000,
    )
  }

  afterAll(() => server.stop())

  test.each(TORCH_EXCHANGES.map((request) => [exchangeName(request), request] as const))(
    '%s is answered as TorchServe answers it',
    async (name, request) => {
      expect(await exchange(request, server.ports)).toEqual(readRecording()[name])
    },
  )

  test('a tensor is answered as torch.save writes it', async () => {
    const { status, chunks } = await rawRequest(server.ports.inference, '/predictions/tensors', { body: 'x' })
    const load = 'import io, sys, torch; print(torch.load(io.BytesIO(sys.stdin.buffer.read())).tolist())'
    const { stdout } = await execa(python.python, ['-c', load], { input: Buffer.concat(chunks) })
    expect([status, stdout]).toEqual([200, '[0, 1, 2]'])
  })

  test('two ranks of torchrun are one worker with one answer, from rank 0', async () => {
    const { status, body } = await rawRequest(server.ports.inference, '/predictions/summed', { body: '5' })
    const answer = { rank: 0, ranks: 2, sum: 15 }
    expect([status, JSON.parse(body)]).toEqual([200, answer])
    const overGrpc = await exchange({ model: 'summed', over: 'grpc', body: '5' }, server.ports)
    expect(overGrpc.parts.map((part) => JSON.parse(part) as object)).toEqual([answer])
    expect(await server.describe('summed')).toMatchObject([{ parallelType: 'tp', parallelLevel: 2 }])
  })

  test('a rank that dies fails the request, and the group comes back', async () => {
    const { status, body } = await rawRequest(server.ports.inference, '/predictions/summed', { body: '-1' })
    expect([status, (JSON.parse(body) as { message?: string }).message]).toEqual([500, 'Worker died.'])
    await server.until(
      () => rawRequest(server.ports.inference, '/predictions/summed', { body: '1' }),
      (answer) => answer.status === 200 && (JSON.parse(answer.body) as { sum: number }).sum === 3,
      120_000,
    )
  })
})
