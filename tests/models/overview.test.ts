import { afterEach, beforeEach, expect, jest, test } from '@jest/globals'
import type { ModelOverview } from '../../common/server-events.ts'
import type { Model } from '../../frontend/models/model.ts'
import type { WorkerDescription } from '../../frontend/models/operations.ts'
import { isStarting, overviewOf, startingOverview } from '../../frontend/models/describe.ts'
import { Tally } from '../../frontend/observe/metrics/tally.ts'

beforeEach(() => {
  jest.useFakeTimers({ now: 1_000_000 })
})
afterEach(() => {
  jest.useRealTimers()
})

const FAILURE = { id: 'f00d', at: new Date(0), reason: 'no weights', publicCause: 'it has no valid handler' }

interface Told {
  wanted?: number
  ready?: number
  failure?: typeof FAILURE
  workers?: Partial<WorkerDescription>[]
  tally?: Tally
  more?: Partial<Model>
}

/** A model in which each number is another. */
function modelWith({ wanted = 1, ready = 1, failure, workers = [], tally, more }: Told = {}): Model {
  const model = {
    name: 'm',
    version: '1.0',
    url: 'm.mar',
    registeredAt: 994_000,
    prepared: { runtime: 'node' },
    minWorkers: 2,
    maxWorkers: 3,
    open: 4,
    queue: { pending: 5, remainingCapacity: 6 },
    metrics: { tally: tally ?? new Tally() },
    workers: { wanted, ready, failure, describe: () => workers },
    wakes: false,
    methods: undefined,
    workflowNode: undefined,
    traffic: undefined,
    progress: () => ({ streams: 7, items: 8, bytes: 9 }),
    ...more,
  }
  return model as unknown as Model
}

test('each number of a model is shown under its own name', () => {
  const traffic = { share: 0.25 } as Model['traffic']
  expect(overviewOf(modelWith({ more: { traffic } }), true)).toMatchObject({
    modelName: 'm',
    modelVersion: '1.0',
    isDefault: true,
    runtime: 'node',
    minWorkers: 2,
    maxWorkers: 3,
    open: 4,
    queue: { waiting: 5, room: 6 },
    streams: 7,
    trafficShare: 0.25,
  })
  const { isDefault, trafficShare, failure } = overviewOf(modelWith(), false)
  expect([isDefault, trafficShare, failure]).toEqual([false, undefined, undefined])
})

test('items and bytes are those of the requests that have ended and of those that are open', () => {
  const tally = new Tally()
  tally.items = 100
  tally.bytes = 1000
  expect(overviewOf(modelWith({ tally }), true).counts).toMatchObject({ items: 108, bytes: 1009 })
})

test('the endings of streams and of unary answers are apart', () => {
  const tally = new Tally()
  Object.assign(tally.kinds.unary.endings, {
    finished: 1,
    failed: 2,
    cancelled: 3,
    timed_out: 4,
    client_stalled: 0,
  })
  Object.assign(tally.kinds.stream.endings, {
    finished: 5,
    failed: 6,
    cancelled: 7,
    timed_out: 8,
    client_stalled: 0,
  })
  expect(overviewOf(modelWith({ tally }), true).counts).toMatchObject({
    unary: { finished: 1, failed: 2, cancelled: 3, timed_out: 4, client_stalled: 0 },
    stream: { finished: 5, failed: 6, cancelled: 7, timed_out: 8, client_stalled: 0 },
  })
})

test('the handler’s methods, and what fails, are shown for those who look for the cause', () => {
  const tally = new Tally()
  const error = {
    code: 'HANDLER_FAILED',
    count: 3,
    at: '1970-01-01T00:00:00.000Z',
    requestId: 'r',
    reason: 'no',
  }
  tally.errors.set(error.code, error)
  tally.failedInARow = 2
  expect(overviewOf(modelWith({ tally, more: { methods: ['predict'] } }), true)).toMatchObject({
    methods: ['predict'],
    failedInARow: 2,
    errors: [error],
  })
})

test('times are those of streams and of unary answers together', () => {
  const tally = new Tally()
  const { stream, unary } = tally.kinds
  tally.gaps.observe(0.5)
  for (const [seconds, distribution] of [
    [1, stream.firstResponse],
    [2, unary.firstResponse],
    [4, stream.queue],
    [8, unary.queue],
    [16, stream.whole],
    [32, unary.whole],
  ] as const)
    distribution.observe(seconds)
  const { times } = overviewOf(modelWith({ tally }), true)
  const seen = Object.entries(times).map(([name, { sum, counts }]) => {
    return [name, sum, counts.reduce((all, count) => all + count, 0)]
  })
  expect(seen).toEqual([
    ['firstResponse', 3, 2],
    ['gaps', 0.5, 1],
    ['queue', 12, 2],
    ['whole', 48, 2],
  ])
})

test.each<[ModelOverview['state'], Told]>([
  ['failed', { failure: FAILURE, wanted: 2, ready: 1 }],
  ['ready', { wanted: 2, ready: 1 }],
  ['loading', { wanted: 2, ready: 0 }],
  ['waking', { wanted: 0, ready: 0, more: { wakes: true } }],
  ['stopped', { wanted: 0, ready: 0 }],
])('a model is %s', (state, told) => {
  expect(overviewOf(modelWith(told), true).state).toBe(state)
})

test('a failure has its id, its time and its reason', () => {
  expect(overviewOf(modelWith({ failure: FAILURE }), true).failure).toEqual({
    id: 'f00d',
    at: '1970-01-01T00:00:00.000Z',
    reason: 'no weights',
  })
})

test('a worker without a process has no pid and no memory', () => {
  const common = { inFlight: 1, restarts: 2 }
  const lastExit = { at: '1970-01-01T00:00:00.000Z', reason: 'killed', stderr: ['last line'] }
  const workers = [
    { ...common, id: '9000', pid: 17, state: 'ready', memoryUsage: 18 },
    { ...common, id: '9001', pid: 0, state: 'starting', memoryUsage: 0 },
    { ...common, id: '9002', pid: -1, state: 'failed', memoryUsage: 0, lastExit },
  ]
  const gone = { pid: undefined, memoryBytes: undefined }
  expect(overviewOf(modelWith({ workers }), true).workers).toEqual([
    { ...common, id: '9000', pid: 17, state: 'ready', memoryBytes: 18, lastExit: undefined },
    { ...common, ...gone, id: '9001', state: 'starting', lastExit: undefined },
    {
      ...common,
      ...gone,
      id: '9002',
      state: 'failed',
      lastExit: { at: lastExit.at, cause: 'killed', lines: ['last line'] },
    },
  ])
})

test.each<[string, boolean, Told]>([
  ['waits for its first worker', true, {}],
  ['waits for it in a workflow', true, { more: { workflowNode: { workflow: 'w', kind: 'model' } } }],
  [
    'is a function of a workflow, which no list shows',
    false,
    { more: { workflowNode: { workflow: 'w', kind: 'functions' } } },
  ],
  ['wants no worker', false, { wanted: 0 }],
  ['cannot be loaded', false, { failure: FAILURE }],
  ['was loaded before', false, { more: { methods: [] } }],
])('whether a model is starting that %s: %s', (_what, expected, told) => {
  expect(isStarting(modelWith({ ready: 0, ...told }))).toBe(expected)
})

test('a model that starts is shown with the time since it was registered', () => {
  expect(startingOverview(modelWith())).toEqual({
    modelName: 'm',
    url: 'm.mar',
    phase: 'starting workers',
    ageMs: 6000,
  })
})
