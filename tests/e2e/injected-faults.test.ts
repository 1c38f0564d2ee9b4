import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import type { Asked } from '../contract/dialect.ts'
import { Ledger, type Order } from '../soak/ledger.ts'
import { COUNT, countBody } from '../support/count.ts'
import { ALL_DIALECTS, ask, CASES, DIALECTS } from '../support/dialects.ts'
import { PACED, pacedModels } from '../support/paced.ts'
import { isRunning } from '../support/processes.ts'
import { RawRequest, rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { TORCHSERVE_INFER } from '../contract/dialects/grpc-forms.ts'

const ITEMS = 200
const GAP_MS = 50

/** TorchServe's own V2 wants JSON of a handler that has only `handle`. */
const ALL = CASES.filter(([name, model]) => name !== TORCHSERVE_INFER.name || model !== 'paced')

let server: Server

beforeAll(async () => {
  const config = {
    minWorkers: 1,
    maxWorkers: 1,
    asyncCommunication: true,
    maxConcurrency: 64,
    responseTimeout: 8,
  }
  server = await startServer({
    models: pacedModels(config),
    // A worker that stands still for ever is killed after that: by default it is waited for ten seconds.
    config: { ...ALL_DIALECTS, cancel_grace_ms: 2000 },
    env: { NODE_OPTIONS: '--max-old-space-size=200' },
  })
  await Promise.all(PACED.map((model) => server.ready(model)))
})

const pidsNow = (): Promise<number[]> =>
  Promise.all(PACED.map(async (model) => (await server.worker(model)).pid))

/** Every dialect with every model at once; when `begun` resolves, those that stream have had an item. */
function askAll(plan: object): { begun: Promise<unknown>; asked: Promise<[string, Order, Asked][]> } {
  const begun: Promise<void>[] = []
  const asked = ALL.map(async ([name, model, dialect]): Promise<[string, Order, Asked]> => {
    const client = dialect.at(server.ports[dialect.port])
    const order = { id: randomUUID(), n: ITEMS, ...plan }
    let hasItem = (): void => undefined
    if (!dialect.whole) begun.push(new Promise((resolve) => (hasItem = resolve)))
    const answer = await client
      .ask(model, JSON.stringify({ ...order, stamped: true }), { onItem: () => hasItem() })
      .catch((error: unknown): Asked => ({ items: [], end: { kind: 'failed', message: String(error) } }))
      .finally(() => client.close())
    hasItem()
    return [`${name}, ${model}`, order, answer]
  })
  return { begun: Promise.all(begun), asked: Promise.all(asked) }
}

/** The stream contract: what came is in order and of its own request; a cut stream is an error. */
function expectKept(all: [string, Order, Asked][], excused: boolean): void {
  const ledger = new Ledger()
  for (const [name, order, asked] of all) ledger.stream(name, order, asked, excused)
  expect(ledger.findings).toEqual([])
}

/** Lets one more request of each model do the harm itself. */
async function harm(plan: object): Promise<void> {
  const paths = DIALECTS.filter(({ name }) => name === 'OpenAI chat stream')
  await Promise.all(PACED.map((model) => ask(server, paths[0]!, model, { n: 5, ...plan })))
}

const FAULTS: [name: string, inject: () => Promise<void>][] = [
  ['SIGKILL', async () => (await pidsNow()).forEach((pid) => process.kill(pid, 'SIGKILL'))],
  ['exit 0 in mid-stream', () => harm({ exit: 2 })],
  ['half a frame, and the end', () => harm({ half: 2 })],
  ['out of memory', () => harm({ eat: 2 })],
  ['SIGSTOP for ever', async () => (await pidsNow()).forEach((pid) => process.kill(pid, 'SIGSTOP'))],
]

describe('a fault of a worker while every dialect streams: errors that clients see, and the next stream is whole', () => {
  test.each(FAULTS)('%s', async (_name, inject) => {
    const before = await pidsNow()
    const { begun, asked } = askAll({ gap: GAP_MS })
    await begun
    await inject()
    const all = await asked
    expectKept(all, true)
    expect(all.filter(([, , { end }]) => end.kind === 'finished').map(([name]) => name)).toEqual([])
    await server.until(pidsNow, (pids) => pids.every((pid) => !before.includes(pid)), 60_000)
    await Promise.all(PACED.map((model) => server.ready(model)))
    for (const pid of before) expect(isRunning(pid)).toBe(false)
    expectKept(await askAll({ n: 5 }).asked, false)
  })

  test('SIGSTOP for a moment harms nobody', async () => {
    const { begun, asked } = askAll({ n: 20, gap: GAP_MS })
    await begun
    const pids = await pidsNow()
    for (const pid of pids) process.kill(pid, 'SIGSTOP')
    // Longer than anything but the limits on time.
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    for (const pid of pids) process.kill(pid, 'SIGCONT')
    expectKept(await asked, false)
    expect(await pidsNow()).toEqual(pids)
  })
})

test('the wall clock jumps by days while streams run: nothing ends early, and the next requests are served', async () => {
  const jumping = await startServer({
    models: [COUNT],
    nodeArgs: ['--import', join(REPOSITORY, 'tests/support/clock-jump.mjs')],
  })
  await jumping.ready('count')
  const run = (id: string): RawRequest =>
    new RawRequest(jumping.ports.inference, '/predictions/count', countBody({ id, n: 100, delay: 10 }))
  for (const jump of [1, 2]) {
    const stream = run(`jump ${jump}`)
    await stream.gotChunks(3)
    process.kill(jumping.pid, 'SIGUSR2')
    await jumping.until(
      () => Promise.resolve(jumping.output.filter((line) => line.startsWith('clock-jump')).length),
      (jumps) => jumps === jump,
    )
    const { chunks, complete } = await stream.done
    expect([chunks.length, complete]).toEqual([100, true])
    const path = '/models?url=word'
    expect((await rawRequest(jumping.ports.management, path)).status).toBe(404)
    expect((await run(`after ${jump}`).done).complete).toBe(true)
  }
  // A worker that starts while the clock is set back has taken some time, and no less than none.
  const { pid } = await jumping.worker('count')
  process.kill(pid, 'SIGKILL')
  await jumping.until(
    () => jumping.worker('count'),
    (worker) => worker.pid !== pid && worker.status === 'READY',
  )
  expect(await jumping.metric('WorkerLoadTime')).toBeLessThan(60_000)
  expect(await jumping.metric('WorkerLoadTime')).toBeGreaterThan(0)
  expect(await jumping.stop()).toBe(0)
})

test('registrations of one model at the same time: one wins, the others are conflicts, and it serves', async () => {
  const racing = await startServer({ modelStore: join(REPOSITORY, 'model-store') })
  for (const round of [1, 2, 3]) {
    const register = (): Promise<{ status: number }> =>
      racing.manage('POST', '/models?url=echo&model_name=echo&initial_workers=1&synchronous=true')
    const answers = await Promise.all(Array.from({ length: 6 }, register))
    const statuses = answers.map(({ status }) => status).sort()
    expect([round, statuses]).toEqual([round, [200, 409, 409, 409, 409, 409]])
    const { body } = await rawRequest(racing.ports.inference, '/predictions/echo', { body: 'x' })
    expect(body).toBe('x')
    const gone = await Promise.all([1, 2].map(() => racing.manage('DELETE', '/models/echo')))
    expect(gone.map(({ status }) => status).sort()).toEqual([200, 404])
  }
  await racing.stop()
  expect(racing.leftovers().filter((name) => name !== 'models')).toEqual([])
})

test('the frontend is killed while its workers stream: clients see a break, and no worker remains', async () => {
  const killed = await startServer({ models: [COUNT, `echo=${join(REPOSITORY, 'model-store', 'echo')}`] })
  await Promise.all([killed.ready('count'), killed.ready('echo')])
  const pids = [(await killed.worker('count')).pid, (await killed.worker('echo')).pid]
  const streams = ['a', 'b', 'c'].map(
    (id) =>
      new RawRequest(killed.ports.inference, '/predictions/count', countBody({ id, n: 100_000, delay: 1 })),
  )
  await Promise.all(streams.map((stream) => stream.gotChunks(3)))
  await killed.stop('SIGKILL')
  for (const { complete } of await Promise.all(streams.map(({ done }) => done))) expect(complete).toBe(false)
  await killed.until(
    () => Promise.resolve(pids.filter(isRunning)),
    (left) => left.length === 0,
  )
})
