import { afterAll, beforeAll, expect, test } from '@jest/globals'
import { join } from 'node:path'
import { countBody } from '../support/count.ts'
import { countFolder } from '../support/model-folder.ts'
import { RawRequest, rawRequest, type RawResponse } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { json, WorkflowStore } from '../support/workflows.ts'

const MB = 1_048_576
const MODELS = ['one', 'two', 'three']
const store = new WorkflowStore()

let server: Server

beforeAll(async () => {
  server = await startServer({
    modelStore: join(REPOSITORY, 'model-store'),
    models: MODELS.map((name) => countFolder(name, { minWorkers: 1, maxWorkers: 1, maxConcurrency: 1 })),
    config: { workflow_store: store.folder, max_waiting_input_bytes: 4 * MB },
  })
  await Promise.all(MODELS.map((name) => server.ready(name)))
  await store.register(server, 'leaves', 'dag: {pass: [left, right]}')
})

afterAll(() => server.stop())

/** A request that is answered at once, with this many bytes. */
function large(model: string, bytes: number): Promise<RawResponse> {
  const body = JSON.stringify({ n: 1, delay: 0 }) + ' '.repeat(bytes)
  return rawRequest(server.ports.inference, `/predictions/${model}`, { ...countBody({ id: model }), body })
}

test('bodies in the queues of all models share one budget', async () => {
  const blockers = MODELS.map(
    (model) =>
      new RawRequest(
        server.ports.inference,
        `/predictions/${model}`,
        countBody({ id: model, n: 1_000_000, delay: 60_000 }),
      ),
  )
  await Promise.all(blockers.map((blocker) => blocker.gotChunks(1)))
  const waiting = [large('one', 1.5 * MB), large('two', 1.5 * MB)]
  await server.until(
    () => server.metric('torchserve_ts_queue_depth', {}),
    (depth) => depth === 2,
  )
  const refused = await large('three', 1.5 * MB)
  expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
  expect(refused.body).toContain(`have too many bytes: ${4 * MB} may wait (max_waiting_input_bytes)`)
  const small = large('three', 10)
  for (const blocker of blockers) blocker.destroy()
  expect((await Promise.all([...waiting, small])).map(({ status }) => status)).toEqual([200, 200, 200])
  expect((await large('three', 1.5 * MB)).status).toBe(200)
})

test('so do the inputs of the nodes of a workflow', async () => {
  const ask = (bytes: number): Promise<RawResponse> =>
    rawRequest(server.ports.inference, '/wfpredict/leaves', json({ id: 'x'.repeat(bytes), words: 'to be' }))
  const refused = await ask(2 * MB)
  expect(refused.status).toBe(503)
  expect(refused.body).toContain('max_waiting_input_bytes')
  expect((await ask(0.2 * MB)).status).toBe(200)
})
