import { beforeAll, describe, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

const MAX_BATCH_DELAY = 200

let server: Server

beforeAll(async () => {
  const one = { minWorkers: 1, maxWorkers: 1 }
  const two = { minWorkers: 2, maxWorkers: 2 }
  server = await startServer({
    models: [
      modelFolder('batches', 'batches', { ...one, batchSize: 8, maxBatchDelay: MAX_BATCH_DELAY }),
      modelFolder('full', 'batches', { ...two, batchSize: 8, maxBatchDelay: 600_000 }),
      modelFolder('impatient', 'batches', { ...one, clientTimeoutInMills: 300, cancelGraceMs: 60_000 }),
      modelFolder('narrow', 'batches', { ...one, jobQueueSize: 2 }),
      modelFolder('tickets', 'batches', { ...two, batchSize: 4, maxBatchDelay: 60_000, useJobTicket: true }),
    ],
  })
  await Promise.all(['batches', 'full', 'impatient', 'narrow', 'tickets'].map((model) => server.ready(model)))
})

function predict(model: string, body: Record<string, unknown> = {}): Promise<RawResponse> {
  return rawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** What the handler returned, and how long the request waited for its batch. */
interface Told {
  pid: number
  batch: number
  size: number
  startedAt: number
  waited: number
}

async function timed(): Promise<Told> {
  const sentAt = performance.timeOrigin + performance.now()
  const { status, body } = await predict('batches')
  expect(status).toBe(200)
  const told = JSON.parse(body) as Told
  return { ...told, waited: told.startedAt - sentAt }
}

/** Waits until a model has nothing to do and nothing waiting. */
function idle(model: string): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.workers.every(({ inFlight }) => inFlight === 0),
  )
}

/** Waits until so many requests of a model run. */
function running(model: string, count: number): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.workers.reduce((sum, { inFlight }) => sum + inFlight, 0) === count,
  )
}

/** Waits until so many requests of a model wait. */
function waiting(model: string, count: number): Promise<unknown> {
  return server.until(
    () => server.describe(model),
    ([version]) => version!.jobQueueStatus.pendingRequests === count,
  )
}

describe('batching', () => {
  test('full batches begin without a delay, on every free worker; while all work, the next ones fill', async () => {
    const gate = new Gate()
    const first = Array.from({ length: 16 }, () => predict('full', { until: gate.path }))
    await running('full', 16)
    const next = Array.from({ length: 16 }, () => predict('full'))
    await waiting('full', 16)
    gate.open()
    const told = (await Promise.all([...first, ...next])).map(({ body }) => JSON.parse(body) as Told)
    expect(told.map(({ size }) => size)).toEqual(Array(32).fill(8))
    expect(new Set(told.map(({ pid, batch }) => `${pid}/${batch}`)).size).toBe(4)
    expect(Object.keys(groupByPid(told.slice(0, 16)))).toHaveLength(2)
  })

  test('a batch that does not fill begins after maxBatchDelay', async () => {
    const { size, waited } = await timed()
    expect(size).toBe(1)
    expect(waited).toBeGreaterThan(MAX_BATCH_DELAY - 50)
  })

  test('a request that fails does not fail its batch', async () => {
    const answers = await Promise.all(Array.from({ length: 8 }, (_, k) => predict('full', { fail: k === 3 })))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 503, 200, 200, 200, 200])
    expect(JSON.parse(answers[3]!.body)).toMatchObject({ message: 'Prediction failed' })
    expect((JSON.parse(answers[0]!.body) as Told).size).toBe(8)
  })

  test('a request that waits longer than clientTimeoutInMills gets an answer, and never runs', async () => {
    const gate = new Gate()
    const blocker = predict('impatient', { until: gate.path })
    await running('impatient', 1)
    const message = 'Timed out after 0.3 s: the whole request took too long (clientTimeoutInMills)'
    for (const { status, body } of [await blocker, await predict('impatient')]) {
      expect(status).toBe(500)
      expect(JSON.parse(body)).toMatchObject({ message })
    }
    gate.open()
    await idle('impatient')
    const { json } = await server.until(
      () => server.manage('GET', '/models/impatient?customized=true'),
      ({ status }) => status === 200, // it has the same time limit
    )
    expect(json[0]).toMatchObject({ customizedMetadata: { batches: 1 } })
  })

  test('what is more than jobQueueSize is refused at once', async () => {
    const gate = new Gate()
    const blocker = predict('narrow', { until: gate.path })
    await running('narrow', 1)
    const queued = [predict('narrow'), predict('narrow')]
    await waiting('narrow', 2)
    expect((await server.describe('narrow'))[0]!.jobQueueStatus.remainingCapacity).toBe(0)
    const refused = await predict('narrow')
    expect([refused.status, refused.headers['retry-after']]).toEqual([503, '1'])
    expect(JSON.parse(refused.body)).toMatchObject({
      type: 'ServiceUnavailableException',
      message:
        'The queue of model "narrow" is full: 2 requests wait for a worker. Retry later, or raise jobQueueSize in ' +
        'its model-config.yaml (job_queue_size in config.properties) or its number of workers.',
    })
    gate.open()
    for (const answer of [blocker, ...queued]) expect((await answer).status).toBe(200)
  })
})

describe('job tickets', () => {
  test('as many requests run as there are workers, the next is refused at once, and none waits for a batch', async () => {
    expect((await server.describe('tickets'))[0]).toMatchObject({ useJobTicket: true, batchSize: 4 })
    const gate = new Gate()
    const taken = [1, 2].map(() => predict('tickets', { until: gate.path }))
    await running('tickets', 2)
    const refused = await predict('tickets')
    gate.open()
    expect(refused.status).toBe(503)
    expect(refused.body).toContain('No worker of model \\"tickets\\" is free')
    const told = (await Promise.all(taken)).map(({ body }) => JSON.parse(body) as Told)
    expect(told.map(({ size }) => size)).toEqual([1, 1])
    expect(new Set(told.map(({ pid }) => pid)).size).toBe(2)
    expect((await predict('tickets')).status).toBe(200)
  })

  test('a customized describe takes one too', async () => {
    const { json } = await server.manage('GET', '/models/tickets?customized=true')
    expect(json[0]).toMatchObject({ customizedMetadata: { described: expect.any(Number) } })
  })
})

function groupByPid(all: Told[]): Record<number, Told[]> {
  const groups: Record<number, Told[]> = {}
  for (const told of all) (groups[told.pid] ??= []).push(told)
  return groups
}
