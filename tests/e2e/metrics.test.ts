import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from '@jest/globals'
import { countBody, COUNT, ECHO } from '../support/count.ts'
import { Exposition } from '../support/exposition.ts'
import { rawRequest } from '../support/raw-http.ts'
import { REPOSITORY, startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const METER = `meter=${join(REPOSITORY, 'tests', 'support', 'handlers', 'meter')}`
const Hostname = hostname()

async function page(server: Server, query = ''): Promise<string> {
  const { status, body, headers } = await rawRequest(server.ports.metrics, `/metrics${query}`, {
    method: 'GET',
  })
  expect([status, headers['content-type']]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
  return body
}

async function scrape(server: Server): Promise<Exposition> {
  return new Exposition(await page(server))
}

/** Scrapes until it passes: what workers report may come a little later than their answers. */
function scraped(server: Server, passes: (exposition: Exposition) => boolean): Promise<Exposition> {
  return server.until(() => scrape(server), passes)
}

const predict = (server: Server, model: string): ReturnType<typeof rawRequest> =>
  rawRequest(server.ports.inference, `/predictions/${model}`, {
    headers: { 'content-type': 'text/plain' },
    body: 'x',
  })

/** A metrics.yaml with metrics of a handler beside those of the package. */
function metricsYaml(): string {
  const path = join(tempDir(), 'metrics.yaml')
  writeFileSync(
    path,
    `ts_metrics:
  counter:
    - {name: Requests2XX, unit: Count, dimensions: [Level, Hostname]}
model_metrics:
  counter:
    - {name: InferenceRequestCount, unit: count, dimensions: []}
    - {name: InitializeCallCount, unit: count, dimensions: [ModelName, Level]}
  gauge:
    - {name: RequestBatchSize, unit: count, dimensions: [ModelName]}
    - {name: SizeOfImage, unit: kB, dimensions: [ModelName, Level]}
  histogram:
    - {name: HandlerTime, unit: ms, dimensions: [ModelName, Level]}
`,
  )
  return path
}

describe('a dashboard that was made for TorchServe', () => {
  let server: Server
  let before: Exposition
  let after: Exposition

  beforeAll(async () => {
    const folder = tempDir()
    mkdirSync(join(folder, 'bin'))
    writeFileSync(join(folder, 'bin', 'nvidia-smi'), '#!/bin/sh\necho "3, 50, 25, 2048"\n')
    chmodSync(join(folder, 'bin', 'nvidia-smi'), 0o755)
    server = await startServer({
      models: [ECHO, COUNT],
      config: { metrics_mode: 'prometheus' },
      env: { PATH: `${join(folder, 'bin')}:${process.env['PATH']}` },
    })
    await server.ready('echo')
    await server.ready('count')
    before = await scrape(server)
    for (let n = 0; n < 3; n += 1) await predict(server, 'echo')
    await rawRequest(server.ports.inference, '/predictions/echo/1.0', { body: 'x' })
    await rawRequest(server.ports.inference, '/predictions/nobody', { body: 'x' })
    const stream = { id: 'a', n: 6, delay: 100, stream: true }
    await rawRequest(server.ports.inference, '/predictions/count', countBody(stream))
    after = await scraped(server, (exposition) => exposition.select('PredictionTime').length === 2)
  })

  const increase = (name: string, labels: Record<string, string> = {}): number =>
    after.sum(name, labels) - before.sum(name, labels)

  test('finds the requests: sum by (model_version) (increase(ts_inference_requests_total{model_name="echo"}))', () => {
    const name = 'ts_inference_requests_total'
    expect(after.families.get(name)).toMatchObject({
      type: 'counter',
      help: 'Torchserve prometheus counter metric with unit: Count',
    })
    expect(after.sumBy('model_version', name, { model_name: 'echo', hostname: Hostname })).toEqual({
      default: 3,
      '1.0': 1,
    })
    expect(increase(name)).toBe(5)
  })

  test('finds the mean latency: rate(ts_inference_latency_microseconds) / rate(ts_inference_requests_total)', () => {
    const labels = { model_name: 'count', model_version: 'default' }
    const mean =
      increase('ts_inference_latency_microseconds', labels) / increase('ts_inference_requests_total', labels)
    expect(mean).toBeGreaterThan(150_000)
    const queue = increase('ts_queue_latency_microseconds', labels)
    expect(queue).toBeGreaterThan(0)
    expect(queue).toBeLessThan(mean)
  })

  test('finds answers by status: Requests2XX, Requests4XX, Requests5XX', () => {
    const labels = { Level: 'Host', Hostname }
    expect(increase('Requests4XX', labels)).toBe(1)
    expect(increase('Requests2XX', labels)).toBeGreaterThanOrEqual(5)
    expect(after.select('Requests5XX', labels)).toMatchObject([{ value: 0 }])
  })

  test('finds the gauges of queue and workers', () => {
    const labels = { Level: 'Host', Hostname }
    expect(after.select('QueueTime', labels)).toHaveLength(1)
    expect(after.select('WorkerThreadTime', labels)).toHaveLength(1)
    const loads = after.select('WorkerLoadTime', labels)
    expect(loads.map((load) => load.labels['WorkerName']).sort()).toEqual([
      'W-9000-echo_1.0',
      'W-9001-count_1.0',
    ])
    for (const load of loads) expect(load.value).toBeGreaterThan(10)
  })

  test('finds the machine: CPU, memory, disk, GPU', () => {
    const names = ['CPUUtilization', 'MemoryUsed', 'MemoryAvailable', 'MemoryUtilization']
    names.push('DiskUsage', 'DiskAvailable', 'DiskUtilization')
    for (const name of names)
      expect([name, after.select(name, { Level: 'Host', Hostname }).length]).toEqual([name, 1])
    expect(after.select('GPUUtilization', { DeviceId: '3' })).toMatchObject([{ value: 50 }])
    expect(after.select('GPUMemoryUsed', { DeviceId: '3' })).toMatchObject([{ value: 2048 }])
  })

  test('finds the times of handlers: HandlerTime, PredictionTime', () => {
    const labels = { ModelName: 'count', Level: 'Model', Hostname }
    const [handler] = after.select('HandlerTime', labels)
    const [prediction] = after.select('PredictionTime', labels)
    expect(handler!.value).toBeGreaterThan(150)
    expect(prediction!.value).toBeGreaterThanOrEqual(handler!.value)
  })

  test('finds what TorchServe does not have: histogram_quantile over first responses, gaps, queue and whole requests', () => {
    const labels = { model_name: 'count', model_version: '1.0' }
    const quantile = (name: string, more: Record<string, string> = {}): number =>
      after.quantile(0.5, `torchserve_ts_${name}_seconds`, { ...labels, ...more })
    const stream = (name: string): number =>
      after.sum(`torchserve_ts_${name}_seconds_sum`, { ...labels, kind: 'stream' })
    // Six items with 100 ms between them; the first ones may come late on a busy machine.
    expect(quantile('gap')).toBeGreaterThan(0.01)
    expect(after.sum('torchserve_ts_gap_seconds_sum', labels)).toBeGreaterThan(0.2)
    expect(after.sum('torchserve_ts_gap_seconds_count', labels)).toBeGreaterThanOrEqual(5)
    expect(quantile('request', { kind: 'stream' })).toBeGreaterThanOrEqual(0.25)
    expect(stream('queue')).toBeLessThan(stream('first_response'))
    expect(stream('first_response')).toBeLessThan(stream('request'))
    expect(after.sum('torchserve_ts_request_seconds_count', { kind: 'unary', model_name: 'echo' })).toBe(4)
    const outcomes = after.sumBy('outcome', 'torchserve_ts_requests_ended_total', { kind: 'stream' })
    expect(outcomes).toEqual({ finished: 1, failed: 0, cancelled: 0, timed_out: 0, client_stalled: 0 })
  })

  test('may choose its samples by name[]', async () => {
    const chosen = new Exposition(
      await page(server, '?name[]=QueueTime&name[]=ts_inference_requests_total&name[]=no'),
    )
    expect([...chosen.families.keys()]).toEqual(['ts_inference_requests_total', 'QueueTime'])
  })

  test('gets every metric that TorchServe declares, to the letter', async () => {
    const text = await page(server)
    const line = (pattern: RegExp): number => [...text.matchAll(new RegExp(pattern, 'gm'))].length
    expect(line(/^# TYPE QueueTime gauge$/)).toBe(1)
    expect(line(/^QueueTime\{Level="Host",Hostname=".+",\} \d+\.\d+$/)).toBe(1)
    expect(
      line(
        /^ts_queue_latency_microseconds\{model_name="count",model_version="default",hostname=".+",\} \d+\.\d+$/,
      ),
    ).toBe(1)
    expect(line(/^HandlerTime\{ModelName="echo",Level="Model",Hostname=".+",\} \d+\.\d+$/)).toBe(1)
  })

  test('describe tells the memory of a worker', async () => {
    expect((await server.worker('echo')).memoryUsage).toBeGreaterThan(20_000_000)
  })
})

test('handlers report what metrics.yaml declares, in its order and kind; the rest is left out', async () => {
  const server = await startServer({
    models: [METER],
    config: { metrics_mode: 'prometheus', metrics_config: metricsYaml(), disable_system_metrics: true },
  })
  await server.ready('meter')
  for (let n = 0; n < 2; n += 1) await predict(server, 'meter')
  const found = await scraped(server, (exposition) => exposition.sum('InferenceRequestCount') === 2)
  const values = (name: string): unknown[] => found.select(name).map(({ labels, value }) => [labels, value])
  expect(values('InferenceRequestCount')).toEqual([[{ Hostname }, 2]])
  expect(values('InitializeCallCount')).toEqual([[{ ModelName: 'meter', Level: 'Model', Hostname }, 1]])
  expect(values('RequestBatchSize')).toEqual([[{ ModelName: 'meter', Hostname }, 1]])
  expect(values('SizeOfImage')).toEqual([[{ ModelName: 'meter', Level: 'Model', Hostname }, 1.5]])
  expect(values('HandlerTime_count')).toEqual([[{ ModelName: 'meter', Level: 'Model', Hostname }, 2]])
  for (const name of [
    'HandlerMethodTime',
    'PredictionTime',
    'Mistakes',
    'ts_inference_requests_total',
    'MemoryUsed',
  ]) {
    expect(found.families.has(name)).toBe(false)
  }
})

test('with model_metrics_auto_detect=true everything that handlers report is there', async () => {
  const server = await startServer({
    models: [METER],
    config: { metrics_mode: 'prometheus', metrics_config: metricsYaml(), model_metrics_auto_detect: true },
  })
  await server.ready('meter')
  await predict(server, 'meter')
  const found = await scraped(server, (exposition) => exposition.families.has('PredictionTime'))
  const text = await page(server)
  expect(text).toMatch(
    /^HandlerMethodTime\{MethodName="preprocess",ModelName="meter",Level="Model",Hostname=".+",\} 3\.0$/m,
  )
  expect(text).toMatch(/^ExamplePercentMetric_sum\{ModelName="meter",Level="Model",Hostname=".+",\} 50\.0$/m)
  expect(found.families.get('ExamplePercentMetric')?.type).toBe('histogram')
  expect(found.select('Mistakes', { Level: 'Error' })).toMatchObject([{ value: 1 }])
  expect(found.families.get('PredictionTime')?.help).toBe(
    'Torchserve prometheus gauge metric with unit: Milliseconds',
  )
})

test('a metrics.yaml that cannot be used is one line in the log; the server serves without TorchServe’s metrics', async () => {
  const path = join(tempDir(), 'metrics.yaml')
  writeFileSync(path, 'ts_metrics: {gauge: [{name: a}]}')
  const server = await startServer({ models: [ECHO], config: { metrics_config: path } })
  await server.ready('echo')
  expect((await predict(server, 'echo')).status).toBe(200)
  const text = `[ERROR] main torchserve - The metrics configuration ${path} cannot be used: ts_metrics.gauge[0].unit`
  expect(server.output.filter((line) => line.includes(text))).toHaveLength(1)
  const found = await scrape(server)
  expect(found.families.has('QueueTime')).toBe(false)
  expect(found.sum('torchserve_ts_requests_ended_total')).toBe(1)
})
