import { beforeAll, describe, expect, test } from '@jest/globals'
import type { ModelDescription } from '../../frontend/models/operations.ts'
import { TORCHSERVE_INFER } from '../contract/dialects/grpc-forms.ts'
import { ALL_DIALECTS, ask, CASES } from '../support/dialects.ts'
import { Gate } from '../support/gate.ts'
import { modelFolder } from '../support/model-folder.ts'
import { pacedModels } from '../support/paced.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'

/** Each look may add workers, and two quiet looks may end some. */
const QUICK = { targetQueueTime: 1, scaleUpInterval: 0.001, scaleDownAfter: 0.001, scaleToZeroAfter: 0.001 }
/** What has come stays, until the test scales it. */
const STAYS = { ...QUICK, scaleDownAfter: 3600, scaleToZeroAfter: 3600 }

/** TorchServe's own V2 expects a message from `handle`, and this handler answers text. */
const ANSWERED = CASES.filter(([name, model]) => name !== TORCHSERVE_INFER.name || model !== 'paced')

let server: Server

beforeAll(async () => {
  server = await startServer({
    models: [
      modelFolder('load', 'gated', { minWorkers: 1, maxWorkers: 3, scaling: QUICK }),
      modelFolder('drains', 'gated', { minWorkers: 1, maxWorkers: 2, maxConcurrency: 2, scaling: QUICK }),
      modelFolder('bounded', 'gated', { minWorkers: 1, maxWorkers: 3, scaling: STAYS }),
      modelFolder('fixed', 'gated', { minWorkers: 1, maxWorkers: 3 }),
      modelFolder('stateful', 'sequences', {
        ...{ minWorkers: 0, maxWorkers: 2, scaling: QUICK },
        ...{ sequenceBatching: true, maxNumSequence: 4, maxSequenceJobQueueSize: 4 },
      }),
      ...pacedModels({ minWorkers: 0, maxWorkers: 1, scaling: QUICK }),
    ],
    config: ALL_DIALECTS,
  })
  await server.ready('load')
})

async function described(model: string): Promise<ModelDescription> {
  return (await server.describe(model))[0]!
}

async function until(model: string, passes: (model: ModelDescription) => boolean): Promise<ModelDescription> {
  return server.until(() => described(model), passes)
}

const states = ({ workers }: ModelDescription): string[] => workers.map(({ state }) => state)

/** A stream that is held until its gate opens. */
class HeldStream {
  readonly gate = new Gate()
  readonly request: RawRequest

  constructor(model: string) {
    this.request = new RawRequest(server.ports.inference, `/predictions/${model}`, { body: this.gate.path })
  }

  begun(): Promise<void> {
    return this.request.gotChunks(1)
  }

  /** Opens its gate, and expects all that it has to say. */
  async ends(): Promise<void> {
    this.gate.open()
    const { status, body, complete } = await this.request.done
    expect([status, body, complete]).toEqual([200, 'begunopenedend', true])
  }
}

async function heldStreams(model: string, count: number): Promise<HeldStream[]> {
  const streams: HeldStream[] = []
  for (let k = 0; k < count; k += 1) {
    const stream = new HeldStream(model)
    await stream.begun()
    streams.push(stream)
  }
  return streams
}

describe('workers follow the load', () => {
  test('up to maxWorkers, down to minWorkers, and every stream is whole', async () => {
    // Each begins only when there is a worker for it.
    const running = await heldStreams('load', 3)
    const waiting = [new HeldStream('load'), new HeldStream('load')]
    const full = await until('load', ({ jobQueueStatus }) => jobQueueStatus.pendingRequests === 2)
    expect(states(full)).toEqual(['busy', 'busy', 'busy'])
    expect(await server.metric('torchserve_ts_busy_slots', { model_name: 'load' })).toBe(3)
    expect(await server.metric('torchserve_ts_slots', { model_name: 'load' })).toBe(3)
    expect(await server.metric('torchserve_ts_workers_wanted', { model_name: 'load' })).toBe(3)
    const [first, ...others] = running
    for (const stream of others) await stream.ends()
    for (const stream of waiting) await stream.ends()
    // The one that still streams is the one that remains.
    const low = await until('load', ({ workers }) => workers.length === 1)
    expect(states(low)).toEqual(['busy'])
    await first!.ends()
    expect(await server.metric('torchserve_ts_worker_deaths_total', { model_name: 'load' })).toBe(0)
    expect(await server.metric('torchserve_ts_worker_start_seconds_count', { model_name: 'load' })).toBe(3)
  })

  test('a worker that is not needed keeps its stream to its end, and takes no other', async () => {
    const streams = await heldStreams('drains', 3)
    const [before] = await server.describe('drains')
    await streams[0]!.ends()
    const draining = await until('drains', (model) => states(model).includes('draining'))
    expect(states(draining).sort()).toEqual(['draining', 'ready'])
    expect(draining.workers.map(({ id }) => id).sort()).toEqual(before!.workers.map(({ id }) => id).sort())
    const alone = draining.workers.find(({ state }) => state === 'ready')!
    const more = await heldStreams('drains', 1)
    expect((await described('drains')).workers.find(({ id }) => id === alone.id)).toMatchObject({
      state: 'busy',
      inFlight: 2,
    })
    // With more load it comes back: no third process starts.
    const [last] = await heldStreams('drains', 1)
    const back = await described('drains')
    expect(states(back).sort()).toEqual(['busy', 'busy'])
    expect(back.workers.map(({ pid }) => pid).sort()).toEqual(before!.workers.map(({ pid }) => pid).sort())
    for (const stream of [streams[1]!, streams[2]!, ...more, last!]) await stream.ends()
    await until('drains', ({ workers }) => workers.length === 1)
  })

  test('a call sets the bounds, within which the workers stay', async () => {
    const streams = await heldStreams('bounded', 2)
    for (const stream of streams) await stream.ends()
    const scale = (query: string) => server.manage('PUT', `/models/bounded?${query}&synchronous=true`)
    expect(await scale('min_worker=1&max_worker=4')).toEqual({
      status: 200,
      json: { status: 'Workers scaled between 1 and 4 for model: bounded' },
    })
    expect(await described('bounded')).toMatchObject({ minWorkers: 1, maxWorkers: 4 })
    expect((await described('bounded')).workers).toHaveLength(2)
    await scale('min_worker=3&max_worker=4')
    expect((await described('bounded')).workers).toHaveLength(3)
    expect((await scale('min_worker=1')).json.status).toBe('Workers scaled to 1 for model: bounded')
    expect((await described('bounded')).workers).toHaveLength(1)
    await scale('min_worker=0')
    const { status } = await rawRequest(server.ports.inference, '/predictions/bounded', { body: 'x' })
    expect([status, (await described('bounded')).workers]).toEqual([503, []])
  })

  test('not where the model does not ask for it', async () => {
    const [first] = await heldStreams('fixed', 1)
    const second = new HeldStream('fixed')
    await until('fixed', ({ jobQueueStatus }) => jobQueueStatus.pendingRequests === 1)
    // A model that scales gets its second worker meanwhile.
    const others = await heldStreams('load', 2)
    expect(states(await described('fixed'))).toEqual(['busy'])
    expect(await described('fixed')).not.toHaveProperty('scaling')
    for (const stream of [first!, second, ...others]) await stream.ends()
  })
})

describe('a model at zero', () => {
  const asleep = (model: string) => until(model, ({ workers }) => workers.length === 0)

  test.each(ANSWERED)('wakes: %s, %s', async (_name, model, dialect) => {
    const { scaling } = await asleep(model)
    expect(scaling).toMatchObject({ wakes: true })
    const { items, end } = await ask(server, dialect, model, { n: 2, stream: !dialect.whole })
    expect(end).toMatchObject({ kind: 'finished' })
    expect(
      items
        .map(({ text }) => text)
        .join('')
        .replace(/\s/g, ''),
    ).toBe('12')
  })

  test('is ready, for all who ask', async () => {
    await asleep('native')
    const get = async (path: string) => {
      const { status, body } = await rawRequest(server.ports.inference, path, { method: 'GET' })
      return [status, body === '' ? undefined : (JSON.parse(body) as unknown)]
    }
    expect(await get('/v2/models/native/ready')).toEqual([200, { name: 'native', ready: true }])
    expect(await get('/v1/models/native')).toEqual([200, expect.objectContaining({ ready: true })])
    expect(await get('/v2/health/ready')).toEqual([200, expect.objectContaining({ ready: true })])
    expect(await get('/ping')).toEqual([200, { status: 'Healthy' }])
  })

  test('wakes once for many requests, which are all answered; the time is measured', async () => {
    const wakes = () => server.metric('torchserve_ts_wake_seconds_count', { model_name: 'paced' })
    await asleep('paced')
    const before = await wakes()
    const body = JSON.stringify({ id: 'many', n: 1, stream: false })
    const one = () => rawRequest(server.ports.inference, '/predictions/paced', { body })
    const answers = await Promise.all(Array.from({ length: 20 }, one))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(await wakes()).toBe(before + 1)
  })

  test('does not come while a sequence is open', async () => {
    await server.until(
      () => described('stateful'),
      ({ scaling }) => scaling!.wakes,
    )
    const send = async (body: string) => {
      const headers = { ts_request_sequence_id: 's' }
      return rawRequest(server.ports.inference, '/predictions/stateful', { headers, body })
    }
    const first = await send('1')
    // Another model comes to zero twice meanwhile.
    for (let k = 0; k < 2; k += 1) {
      await rawRequest(server.ports.inference, '/predictions/paced', {
        body: '{"id":"s","n":1,"stream":false}',
      })
      await asleep('paced')
    }
    expect(states(await described('stateful'))).toEqual(['ready'])
    const second = await send('2')
    expect([second.body, second.headers['x-pid']]).toEqual(['3', first.headers['x-pid']])
    expect((await send('end')).body).toBe('ended')
    await asleep('stateful')
  })
})
