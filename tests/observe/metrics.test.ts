import { hostname } from 'node:os'
import { describe, expect, test } from '@jest/globals'
import type { Metrics, MetricsMode, MetricsOptions } from '../../frontend/observe/metrics/metrics.ts'
import { readMetricsConfig } from '../../frontend/observe/metrics/metrics-config.ts'
import { LINES_PER_SECOND, MAX_SERIES } from '../../frontend/observe/metrics/series.ts'
import type { MetricMessage, MetricSpec } from '../../protocol/messages.ts'
import { Exposition } from '../support/exposition.ts'
import { testMetrics } from '../support/metrics.ts'

const CONFIG = await readMetricsConfig()
const HOST = hostname()

interface Rig {
  metrics: Metrics
  /** Lines of ts_metrics.log, without their times. */
  server: string[]
  /** Lines of model_metrics.log, without their times. */
  handlers: string[]
  warnings: string[]
  read: () => Exposition
}

function rig(options: Partial<MetricsOptions> = {}): Rig {
  const server: string[] = []
  const handlers: string[] = []
  const warnings: string[] = []
  const metrics = testMetrics({
    config: CONFIG,
    files: { server: writer(server), handlers: writer(handlers) },
    warn: (message) => warnings.push(message),
    ...options,
  })
  return { metrics, server, handlers, warnings, read: () => new Exposition(metrics.page().body.toString()) }
}

const TIMES = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{3} - (.*),timestamp:\d{10}\n$/

function writer(lines: string[]): { write(line: string): void } {
  return {
    write: (line) => {
      expect(line).toMatch(TIMES)
      lines.push(line.replace(TIMES, '$1'))
    },
  }
}

function report(more: Partial<MetricMessage> = {}): MetricMessage {
  return {
    type: 'metric',
    name: 'HandlerTime',
    kind: 'gauge',
    unit: 'Milliseconds',
    dimensions: { ModelName: 'm', Level: 'Model' },
    values: [1.5],
    requestIds: ['id'],
    ...more,
  }
}

/** The metrics of one successful request, and one value of its handler. */
function serve({ metrics }: Rig): void {
  const model = metrics.model('m', '1.0')
  const now = performance.now()
  const job = {
    request: { requestId: 'r-1' },
    createdAt: now - 20,
    startedAt: now - 10,
    firstResponseAt: now - 5,
    outcome: 'finished' as const,
    streaming: false,
    items: 1,
    bytes: 5,
    gaps: undefined,
  }
  model.requested(job)
  model.handed(0.5)
  model.ended(job)
  model.reported(report())
  metrics.response(200)
}

describe('the three modes', () => {
  const LEGACY = [
    'ts_inference_requests_total',
    'ts_inference_latency_microseconds',
    'ts_queue_latency_microseconds',
  ]
  const OTHERS = ['Requests2XX', 'QueueTime', 'WorkerThreadTime']
  const names = (lines: string[]): string[] => lines.map((line) => line.slice(0, line.indexOf('.'))).sort()

  test.each<[MetricsMode, { page: string[]; server: string[]; handlers: string[] }]>([
    [
      'log',
      {
        page: [...LEGACY, ...OTHERS, 'HandlerTime'],
        server: [...LEGACY, ...OTHERS],
        handlers: ['HandlerTime'],
      },
    ],
    ['prometheus', { page: [...LEGACY, ...OTHERS, 'HandlerTime'], server: [], handlers: [] }],
    ['legacy', { page: LEGACY, server: OTHERS, handlers: ['HandlerTime'] }],
  ])('%s', (mode, expected) => {
    const test = rig({ mode })
    serve(test)
    const page = test.read()
    for (const name of [...LEGACY, ...OTHERS, 'HandlerTime']) {
      expect([name, page.select(name).length]).toEqual([name, expected.page.includes(name) ? 1 : 0])
    }
    expect(names(test.server)).toEqual([...expected.server].sort())
    expect(names(test.handlers)).toEqual([...expected.handlers].sort())
    expect(page.sum('torchserve_ts_requests_ended_total')).toBe(1)
    expect(test.warnings).toEqual([])
  })
})

test('lines have TorchServe’s format', () => {
  const test = rig()
  serve(test)
  expect(test.server[0]).toBe(
    `ts_inference_requests_total.Count:1.0|#model_name:m,model_version:default|#hostname:${HOST}`,
  )
  expect(test.server).toContain(`WorkerThreadTime.Milliseconds:0.5|#Level:Host|#hostname:${HOST}`)
  expect(test.handlers).toEqual([
    `HandlerTime.ms:1.5|#ModelName:m,Level:Model|#hostname:${HOST},requestID:id`,
  ])
})

test('no value of a handler can forge a line', () => {
  const test = rig({ autoDetect: true })
  const dimensions = { ModelName: 'm', Level: 'm\nHandlerTime.ms:0|#\u009b31m' }
  test.metrics.model('m', '1.0').reported(report({ dimensions }))
  expect(test.handlers).toHaveLength(1)
  expect(test.handlers[0]).toContain('Level:m\\nHandlerTime')
})

test('a metric writes so many lines a second and no more; nothing of a counter is lost', () => {
  const test = rig()
  const version = test.metrics.server.version('m', '1.0', 'owner')
  for (let i = 0; i < LINES_PER_SECOND + 7; i += 1) {
    version.requests.record(1)
    test.metrics.server.queueTime.record(i)
  }
  const of = (name: string): string[] => test.server.filter((line) => line.startsWith(name))
  expect(of('ts_inference_requests_total')).toHaveLength(LINES_PER_SECOND)
  test.metrics.close()
  expect(of('ts_inference_requests_total').at(-1)).toContain('.Count:7.0|#')
  expect(of('QueueTime').at(-1)).toContain(`.Milliseconds:${LINES_PER_SECOND + 6}.0|#`)
  expect(of('QueueTime')).toHaveLength(LINES_PER_SECOND + 1)
  test.metrics.close()
  expect(of('QueueTime')).toHaveLength(LINES_PER_SECOND + 1)
})

describe('what handlers report', () => {
  const spec = (more: Partial<MetricSpec>): MetricSpec => ({
    name: 'Calls',
    kind: 'counter',
    unit: 'count',
    dimensions: ['ModelName'],
    ...more,
  })
  const calls = report({ name: 'Calls', kind: 'gauge', values: [2, 3], requestIds: ['a', 'b'] })

  test('request ids of a value are those of a batch, not of any length', () => {
    const test = rig({ config: { ts: [], model: [spec({})] } })
    test.metrics.model('m', '1.0').reported({ ...calls, requestIds: ['a'.repeat(6_000_000), 'b'] })
    expect(test.handlers[0]!.split('requestID:')[1]).toHaveLength(8_192)
    expect(test.handlers[1]).toMatch(/requestID:b$/)
  })

  test('a declared metric is what its declaration says, whatever the handler sends', () => {
    const test = rig({ config: { ts: [], model: [spec({})] } })
    test.metrics.model('m', '1.0').reported(calls)
    expect(test.read().families.get('Calls')).toMatchObject({
      help: 'Torchserve prometheus counter metric with unit: count',
      type: 'counter',
      samples: [{ labels: { ModelName: 'm', Hostname: HOST }, value: 5 }],
    })
    expect(test.handlers.map((line) => line.replace(/\|.*,/, ' '))).toEqual([
      'Calls.count:2.0 requestID:a',
      'Calls.count:3.0 requestID:b',
    ])
  })

  test.each(['HandlerTime', 'PredictionTime', 'Calls'])(
    'the model is the one whose worker sent it, whatever the handler says: %s',
    (name) => {
      const model = [spec({ name, kind: 'gauge', dimensions: ['ModelName', 'Level'] })]
      const test = rig({ config: { ts: [], model } })
      test.metrics
        .model('victim', '1.0')
        .reported(report({ name, dimensions: { ModelName: 'victim', Level: 'Model' } }))
      const forged = { ModelName: 'victim', Level: 'Model' }
      test.metrics.model('m', '1.0').reported(report({ name, values: [999], dimensions: forged }))
      const samples = test.read().families.get(name)!.samples
      expect(samples.map(({ labels, value }) => [labels['ModelName'], value])).toEqual([
        ['victim', 1.5],
        ['m', 999],
      ])
    },
  )

  test('as a histogram it has TorchServe’s buckets', () => {
    const test = rig({ config: { ts: [], model: [spec({ kind: 'histogram' })] } })
    test.metrics.model('m', '1.0').reported(calls)
    const page = test.read()
    expect([page.sum('Calls_count'), page.sum('Calls_sum')]).toEqual([2, 5])
    const bounds = page.select('Calls_bucket').map(({ labels }) => labels['le'])
    expect(bounds.join(' ')).toBe('0.005 0.01 0.025 0.05 0.075 0.1 0.25 0.5 0.75 1.0 2.5 5.0 7.5 10.0 +Inf')
  })

  test('what is not declared is left out, unless it is to be detected', () => {
    const strict = rig()
    strict.metrics.model('m', '1.0').reported(calls)
    expect([strict.read().families.has('Calls'), strict.handlers, strict.warnings]).toEqual([false, [], []])

    const open = rig({ autoDetect: true })
    open.metrics.model('m', '1.0').reported(calls)
    expect(open.read().select('Calls', { ModelName: 'm', Level: 'Model', Hostname: HOST })).toHaveLength(1)
  })

  test('without one of its dimensions it is left out, with one warning', () => {
    const test = rig()
    const model = test.metrics.model('m', '1.0')
    model.reported(report({ dimensions: {} }))
    model.reported(report({ dimensions: {} }))
    expect(test.warnings).toEqual([
      'Metric HandlerTime must have the dimension ModelName; the value is dropped',
    ])
    expect(test.handlers).toEqual([])
  })

  test('a dimension without end does not fill the memory', () => {
    const test = rig({ autoDetect: true })
    const model = test.metrics.model('m', '1.0')
    for (let user = 0; user < MAX_SERIES + 50; user += 1) {
      model.reported(report({ name: 'Users', dimensions: { User: String(user) } }))
    }
    expect(test.read().select('Users')).toHaveLength(MAX_SERIES)
    expect(test.handlers).toHaveLength(MAX_SERIES)
    expect(test.warnings).toEqual([
      `Metric Users has more than ${MAX_SERIES} sets of dimension values of one model; further ones are dropped`,
    ])
  })

  test('a name that the page has already, or cannot show, goes to the log file alone', () => {
    const test = rig({ autoDetect: true })
    const model = test.metrics.model('m', '1.0')
    for (const name of ['QueueTime', 'torchserve_ts_gap_seconds_sum', 'with blank'])
      model.reported(report({ name }))
    expect(test.read().families.get('QueueTime')?.samples).toHaveLength(1)
    expect(test.handlers).toHaveLength(3)
    expect(test.warnings.map((warning) => warning.split(':')[0])).toEqual([
      'Metric QueueTime is not on the metrics page',
      'Metric torchserve_ts_gap_seconds_sum is not on the metrics page',
      'Metric with blank is not on the metrics page',
    ])
  })
})

test('a metric of the server that metrics.yaml leaves out is left out, one that it changes is changed', () => {
  const dimensions = ['level', 'host']
  const test = rig({
    config: {
      ts: [
        { name: 'QueueTime', kind: 'histogram', unit: 'ms', dimensions },
        { name: 'Requests2XX', kind: 'counter', unit: 'Count', dimensions: ['host'] },
      ],
      model: [],
    },
  })
  serve(test)
  const page = test.read()
  expect(page.select('QueueTime_count', { level: 'Host', host: HOST })).toMatchObject([{ value: 1 }])
  expect(page.select('Requests2XX')).toEqual([])
  expect(page.families.has('ts_inference_requests_total')).toBe(false)
  expect(test.warnings).toEqual([
    'Metric Requests2XX must have 2 dimensions in metrics_config, the last of them the host; it is left out',
  ])
})

test('failures are counted by error code, and in a row until a request finishes', () => {
  const { metrics } = rig()
  const model = metrics.model('m', '1.0')
  const times = { createdAt: 0, startedAt: 0, firstResponseAt: 0, endedAt: 1 }
  const job = { ...times, streaming: false, items: 0, bytes: 0, gaps: undefined }
  const end = (
    outcome: 'failed' | 'timed_out' | 'cancelled' | 'finished',
    requestId: string,
    code?: string,
  ) =>
    model.ended({ ...job, outcome, request: { requestId }, errorCode: code, errorText: 'why\n  at line 1' })
  end('failed', 'a', 'HANDLER_FAILED')
  end('cancelled', 'b')
  end('failed', 'c', 'HANDLER_FAILED')
  end('timed_out', 'd')
  expect(model.tally.failedInARow).toBe(3)
  expect([...model.tally.errors.values()]).toMatchObject([
    { code: 'HANDLER_FAILED', count: 2, requestId: 'c', reason: 'why' },
    { code: 'DEADLINE_EXCEEDED', count: 1, requestId: 'd' },
  ])
  end('finished', 'e')
  expect(model.tally.failedInARow).toBe(0)
})

test('our own histograms keep streams and unary calls apart', () => {
  const { metrics, read } = rig()
  const model = metrics.model('m', '1.0')
  const now = performance.now()
  const base = {
    request: { requestId: 'r-1' },
    gaps: undefined,
    items: 0,
    bytes: 0,
    createdAt: now - 2600,
    outcome: 'failed' as const,
  }
  const queued = { ...base, startedAt: undefined, firstResponseAt: undefined, streaming: false }
  const stream = { ...base, startedAt: now - 2585, firstResponseAt: now - 2400, streaming: true }
  model.ended(queued)
  model.ended(stream)
  const page = read()
  const bound = (name: string, kind: string): number =>
    page.quantile(1, `torchserve_ts_${name}_seconds`, { model_name: 'm', model_version: '1.0', kind })
  expect([bound('queue', 'unary'), bound('queue', 'stream')]).toEqual([5, 0.025])
  expect([bound('request', 'unary'), bound('request', 'stream')]).toEqual([5, 5])
  expect(bound('first_response', 'stream')).toBe(0.25)
  expect(page.sum('torchserve_ts_first_response_seconds_count', { kind: 'unary' })).toBe(0)
  expect(page.sumBy('outcome', 'torchserve_ts_requests_ended_total')).toMatchObject({
    failed: 2,
    finished: 0,
  })
  // Failed requests do not count in the times that TorchServe sums up.
  expect(page.sum('ts_inference_latency_microseconds')).toBe(0)

  model.unwatch()
  expect(read().sum('torchserve_ts_requests_ended_total')).toBe(0)
})

/** A request without a version, one for it, and a metric that only this model has. */
function used(test: Rig, name: string, version: string) {
  const model = test.metrics.model(name, version)
  const job = {
    ...{ createdAt: 0, startedAt: 0, firstResponseAt: 0, endedAt: 1, outcome: 'finished' as const },
    ...{ streaming: false, items: 1, bytes: 1, gaps: undefined },
  }
  for (const request of [{ requestId: 'r' }, { requestId: 'r', modelVersion: version }]) {
    model.requested({ ...job, request })
    model.ended({ ...job, request })
  }
  model.reported(report({ name: `Of_${name}`, dimensions: { ModelName: name } }))
  model.reported(report())
  return model
}

function modelsOf(test: Rig): Set<string | undefined> {
  const names = test.read().samples.map(({ labels }) => labels['model_name'] ?? labels['ModelName'])
  return new Set(names.filter((name) => name !== undefined))
}

test('the series of a model go with it, so that any number of models can come and go', () => {
  const test = rig({ mode: 'prometheus', autoDetect: true })
  for (let n = 0; n <= MAX_SERIES; n += 1) used(test, `gone${n}`, '1.0').unwatch()
  expect(modelsOf(test)).toEqual(new Set())
  expect(test.read().families.has('Of_gone0')).toBe(false)
  used(test, 'new', '1.0')
  expect(modelsOf(test)).toEqual(new Set(['new']))
  expect(test.read().select('ts_inference_requests_total')).toHaveLength(2)
  expect(test.warnings).toEqual([])
})

test('more models at a time than a metric has label sets for one all have theirs', () => {
  const test = rig({ mode: 'prometheus', autoDetect: true })
  const names = Array.from({ length: MAX_SERIES + 1 }, (_, n) => `m${n}`)
  for (const name of names) used(test, name, '1.0').reported(report({ name: 'Of_all' }))
  const read = test.read()
  for (const metric of ['ts_inference_requests_total', 'HandlerTime', 'Of_all'])
    expect(
      new Set(read.select(metric).map(({ labels }) => labels['model_name'] ?? labels['ModelName'])).size,
    ).toBe(names.length)
})

test('series stay while another version has them: its successor by number, or the name', () => {
  const test = rig({ mode: 'prometheus' })
  const total = (version: string) =>
    test.read().sum('ts_inference_requests_total', { model_name: 'm', model_version: version })
  const first = used(test, 'm', '1.0')
  const successor = test.metrics.model('m', '1.0')
  const other = test.metrics.model('m', '2.0')
  first.unwatch()
  first.unwatch()
  first.reported(report())
  expect([total('1.0'), total('default')]).toEqual([1, 1])
  successor.unwatch()
  expect(
    test
      .read()
      .select('ts_inference_requests_total')
      .map(({ labels }) => labels['model_version']),
  ).toEqual(['default'])
  other.unwatch()
  expect(modelsOf(test)).toEqual(new Set())
})

test('the load time of a worker goes with the worker, and log lines that were held back are written', () => {
  const test = rig()
  const model = test.metrics.model('m', '1.0')
  for (let n = 0; n < MAX_SERIES + 50; n += 1) {
    model.workerLoaded(`W-${n}-m_1.0`, n)
    if (n > 0) model.workerGone(`W-${n}-m_1.0`)
  }
  expect(test.read().select('WorkerLoadTime')).toMatchObject([{ value: 0 }])
  expect(test.server.filter((line) => line.startsWith('WorkerLoadTime'))).toHaveLength(MAX_SERIES + 50)
  for (let n = 0; n <= LINES_PER_SECOND; n += 1) model.workerLoaded('W-0-m_1.0', 7)
  const before = test.server.length
  model.workerGone('W-0-m_1.0')
  expect(test.server.slice(before)).toEqual([expect.stringContaining('WorkerLoadTime.Milliseconds:7.0|')])
})

test('a histogram of this server appears for a model and a kind with its first value', () => {
  const made = rig()
  made.metrics.model('idle', '1.0')
  serve(made)
  const counts = made.read().samples.filter(({ name }) => name === 'torchserve_ts_request_seconds_count')
  expect(counts.map(({ labels, value }) => ({ ...labels, value }))).toEqual([
    { model_name: 'm', model_version: '1.0', kind: 'unary', value: 1 },
  ])
})

test('two versions with the same name and number, of which one replaces the other, have one histogram', () => {
  const made = rig()
  serve(made)
  serve(made)
  const read = made.read()
  expect(read.samples.filter(({ name }) => name === 'torchserve_ts_request_seconds_count')).toMatchObject([
    { value: 2 },
  ])
})
