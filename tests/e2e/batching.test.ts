import { beforeAll, describe, expect, test } from '@jest/globals'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { inOneTry } from '../support/tries.ts'

const BATCH_MS = 200
const MAX_BATCH_DELAY = 200
/** What two busy cores may add. */
const SLACK_MS = 200

let server: Server

beforeAll(async () => {
  const one = { minWorkers: 1, maxWorkers: 1 }
  const two = { minWorkers: 2, maxWorkers: 2 }
  server = await startServer({
    models: [
      modelFolder('batches', 'batches', {
        ...two,
        batchSize: 8,
        maxBatchDelay: MAX_BATCH_DELAY,
        handler: { batchMs: BATCH_MS },
      }),
      modelFolder('impatient', 'batches', { ...one, clientTimeoutInMills: 300, cancelGraceMs: 60_000 }),
      modelFolder('narrow', 'batches', { ...one, jobQueueSize: 2 }),
      modelFolder('tickets', 'batches', { ...two, batchSize: 4, maxBatchDelay: 60_000, useJobTicket: true }),
    ],
  })
  await Promise.all(['batches', 'impatient', 'narrow', 'tickets'].map((model) => server.ready(model)))
})

function predict(model: string, body: Record<string, unknown> = {}): Promise<RawResponse> {
  return rawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
}

/** What the handler told, and how long the request waited until its batch began. */
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

describe('batching', () => {
  test('32 clients, batches of 8, 2 workers: both work, batches fill, nobody waits longer than maxBatchDelay and one batch', () =>
    inOneTry(async () => {
      const client = async (): Promise<Told[]> => {
        const told: Told[] = []
        for (let i = 0; i < 6; i += 1) told.push(await timed())
        return told
      }
      const all = (await Promise.all(Array.from({ length: 32 }, client))).flat()
      expect(all).toHaveLength(32 * 6)
      const batches = new Map(all.map((told) => [`${told.pid}/${told.batch}`, told]))
      const sizes = [...batches.values()].map(({ size }) => size)
      expect(Math.max(...sizes)).toBeLessThanOrEqual(8)
      expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(all.length)
      const byWorker = Object.values(groupByPid(all)).map(({ length }) => length)
      expect(byWorker).toHaveLength(2)
      const mean = all.length / batches.size
      const longest = Math.max(...all.map(({ waited }) => waited))
      const held =
        Math.max(...sizes) === 8 &&
        mean > 4 &&
        Math.min(...byWorker) > all.length / 4 &&
        longest < MAX_BATCH_DELAY + BATCH_MS + SLACK_MS
      return held ? undefined : { sizes, byWorker, mean, longest }
    }))

  test('a batch that does not fill begins after maxBatchDelay', () =>
    inOneTry(async () => {
      const [a, b] = await Promise.all([timed(), timed()])
      expect(Math.max(a.waited, b.waited)).toBeGreaterThan(MAX_BATCH_DELAY - 50)
      if (a.size === 1) return a // the other one came when its time was over
      expect([a.size, a.batch, a.pid]).toEqual([2, b.batch, b.pid])
    }))

  test('a request that fails does not fail its batch', () =>
    inOneTry(async () => {
      const answers = await Promise.all([
        predict('batches'),
        predict('batches', { fail: true }),
        predict('batches'),
      ])
      expect(answers.map(({ status }) => status)).toEqual([200, 503, 200])
      expect(JSON.parse(answers[1].body)).toMatchObject({ message: 'Prediction failed' })
      const { size } = JSON.parse(answers[0].body) as Told
      return size === 3 ? undefined : size
    }))

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
    const waiting = [predict('narrow'), predict('narrow')]
    await server.until(
      () => server.describe('narrow'),
      ([version]) => version!.jobQueueStatus.pendingRequests === 2,
    )
    expect((await server.describe('narrow'))[0]!.jobQueueStatus.remainingCapacity).toBe(0)
    const refused = await predict('narrow')
    expect(refused.status).toBe(503)
    expect(JSON.parse(refused.body)).toMatchObject({
      type: 'ServiceUnavailableException',
      message: expect.stringContaining('Model "narrow" has no worker to serve inference request.'),
    })
    gate.open()
    for (const answer of [blocker, ...waiting]) expect((await answer).status).toBe(200)
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
    expect(refused.body).toContain('has no worker to serve inference request')
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
