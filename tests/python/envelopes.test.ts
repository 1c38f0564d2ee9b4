import { beforeAll, expect, test } from '@jest/globals'
import { allReady, answerOf, predict, PYTHON_MS } from '../support/python/client.ts'
import { pythonFolder } from '../support/python/python-folder.ts'
import { describePython } from '../support/python/test-python.ts'
import { startServer, type Server } from '../support/server.ts'

await describePython('Request envelopes', ({ python, realTorch }) => {
  /** kservev2 needs NumPy, which comes with the real PyTorch. */
  const MODELS = ['body', 'json', 'kserve', ...(realTorch ? ['kservev2'] : [])]
  let server: Server
  let all: Server

  beforeAll(async () => {
    server = await startServer({
      models: MODELS.map((envelope) => pythonFolder(envelope, 'rows', {}, { envelope })),
      config: { python },
    })
    all = await startServer({
      models: [pythonFolder('rows', 'rows', {}, { envelope: 'body' })],
      config: { python, service_envelope: 'json' },
    })
    await allReady(server, MODELS)
    await allReady(all, ['rows'])
  }, PYTHON_MS)

  test('of the manifest: each unwraps and wraps as TorchServe’s', async () => {
    expect(await answerOf(server, 'body', 41)).toBe(42)
    expect(await answerOf(server, 'json', { instances: [1, 2] })).toEqual({ predictions: [2, 3] })
    expect(await answerOf(server, 'kserve', { instances: [1, 2] })).toEqual({ predictions: [2, 3] })
  })

  const v2 = realTorch ? test : test.skip
  v2('kservev2 (with NumPy)', async () => {
    const tensor = { name: 'in', shape: [1], datatype: 'INT64', data: 5 }
    expect(await answerOf(server, 'kservev2', { id: 'mine', inputs: [tensor] })).toMatchObject({
      id: 'mine',
      outputs: [{ name: 'in', datatype: 'INT64', data: [6], shape: [1] }],
    })
  })

  test('of service_envelope: counts for every Python model, before the manifest’s', async () => {
    expect(await answerOf(all, 'rows', { instances: [1] })).toEqual({ predictions: [2] })
  })

  test('an input that the envelope cannot read is an error of that request', async () => {
    expect((await predict(server, 'json', { rows: [1] })).status).toBe(503)
    expect((await server.worker('json')).restarts).toBe(0)
  })
})
