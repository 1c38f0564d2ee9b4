import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, jest, test } from '@jest/globals'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import { metricReaders } from '../../frontend/observe/traces/exporters.ts'
import { PageProducer } from '../../frontend/observe/traces/page-producer.ts'
import { isTracingOn } from '../../frontend/observe/traces/start.ts'
import { version } from '../../frontend/package-info.ts'
import { ALL_DIALECTS, ask, CASES, DIALECTS } from '../support/dialects.ts'
import { grpcReceiver, OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'
import { PACED, pacedModels } from '../support/paced.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const CLIENT = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' }
const TRACEPARENT = `00-${CLIENT.traceId}-${CLIENT.spanId}-01`
const SERVER_KIND = 2

/** Answers with the trace contexts that it got, which should be one. */
const TOLD = `
export default class Told {
  async handle(requests, context) {
    return requests.map((_, index) =>
      Object.entries(context.requestHeaders(index))
        .filter(([name]) => name.toLowerCase() === 'traceparent')
        .map(([, value]) => value)
        .join() || 'none',
    )
  }
}
`

function toldFolder(): string {
  const folder = join(tempDir(), 'told')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.ts'), TOLD)
  return `told=${folder}`
}

function predict(server: Server, headers: Record<string, string> = {}, model = 'told') {
  return rawRequest(server.ports.inference, `/predictions/${model}`, { method: 'POST', body: '{}', headers })
}

/** A trace id of its own for each request. */
function ownTrace(number: number): string {
  return `00-${(number + 1).toString(16).padStart(32, 'f')}-${CLIENT.spanId}-01`
}

function isServers({ kind }: ReceivedSpan): boolean {
  return kind === SERVER_KIND
}

describe('a server that exports', () => {
  const receiver = new OtlpReceiver()
  let server: Server

  beforeAll(async () => {
    const env = await receiver.start()
    server = await startServer({
      models: [...pacedModels({ maxConcurrency: 4 }), toldFolder()],
      config: ALL_DIALECTS,
      env: { ...env, OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=test' },
    })
    await Promise.all([...PACED, 'told'].map((model) => server.ready(model)))
  })

  const traceOf = (traceparent: string): Promise<readonly ReceivedSpan[]> => {
    const [, id] = traceparent.split('-')
    return receiver.trace((span) => span.traceId === id && isServers(span))
  }

  test.each(CASES.map((one, index) => [...one, index] as const))(
    'has the spans of the client, the server and the model in one tree: %s, %s',
    async (_name, model, dialect, index) => {
      const headers = { traceparent: ownTrace(index) }
      await ask(server, dialect, model, { n: 2 }, { headers })
      const spans = await traceOf(headers.traceparent)
      const [request] = spans.filter(isServers)
      expect(request!.parentId).toBe(CLIENT.spanId)
      const ofModel = spans.find(({ name }) => name === `model ${model}`)!
      expect(ofModel.parentId).toBe(request!.spanId)
      expect(ofModel.attributes).toMatchObject({
        'torchserve_ts.model.name': model,
        'torchserve_ts.outcome': 'finished',
      })
      const phases = spans.filter(({ parentId }) => parentId === ofModel.spanId).map(({ name }) => name)
      expect(phases).toEqual(expect.arrayContaining(['queue', 'worker']))
    },
  )

  test('the handler gets the context of its model span, on HTTP and on gRPC', async () => {
    const { body, headers } = await predict(server, { TraceParent: TRACEPARENT })
    const [, traceId, spanId] = body.split('-')
    expect(traceId).toBe(CLIENT.traceId)
    const spans = await traceOf(TRACEPARENT)
    expect(spans.find((span) => span.spanId === spanId)?.name).toBe('model told')
    expect(headers['traceresponse']).toMatch(new RegExp(`^00-${CLIENT.traceId}-[0-9a-f]{16}-01$`))
    const grpc = DIALECTS.find(({ port, whole }) => port === 'grpcInference' && whole)!
    const traceparent = ownTrace(1_000)
    const asked = await ask(server, grpc, 'told', {}, { headers: { traceparent } })
    const [, grpcTrace, grpcSpan] = asked.items[0]!.text.split('-')
    expect(grpcTrace).toBe(traceparent.split('-')[1])
    const ofCall = await traceOf(traceparent)
    expect(ofCall.find((span) => span.spanId === grpcSpan)?.name).toBe('model told')
  })

  test.each([
    ['a text', 'x'.repeat(5_000)],
    ['zeros', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-01`],
    ['another version without the fields', 'ff-1-2-3'],
    ['two contexts', `${TRACEPARENT},${TRACEPARENT}`],
  ])('a context that is not valid begins a new trace: %s', async (_name, traceparent) => {
    const { status, body } = await predict(server, { traceparent })
    expect(status).toBe(200)
    expect(body).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/)
    expect(body).not.toContain(CLIENT.traceId)
  })

  test('a client that decides against sampling is obeyed, and its trace goes on to the handler', async () => {
    const { body } = await predict(server, { traceparent: `00-${'e'.repeat(32)}-${CLIENT.spanId}-00` })
    expect(body).toMatch(new RegExp(`^00-${'e'.repeat(32)}-[0-9a-f]{16}-00$`))
  })

  test.each(DIALECTS.filter(({ whole }) => !whole).map((dialect) => [dialect.name, dialect] as const))(
    'a stream whose client leaves is cancelled: %s',
    async (name, dialect) => {
      const traceparent = ownTrace(2_000 + DIALECTS.findIndex((each) => each.name === name))
      const plan = { n: 1_000, gap: 20 }
      await ask(server, dialect, dialect.models[0]!, plan, { headers: { traceparent }, leaveAfter: 2 })
      const spans = await traceOf(traceparent)
      const ofModel = spans.find((span) => span.name.startsWith('model '))!
      expect(ofModel).toMatchObject({
        status: 0,
        events: ['first response'],
        attributes: { 'torchserve_ts.outcome': 'cancelled', 'torchserve_ts.stream': true },
      })
      expect(spans.map((span) => span.name)).toContain('stream')
    },
  )

  test('a failure is an error of the model span with its code, and of the server span where it is the server', async () => {
    const traceparent = ownTrace(3_000)
    await ask(server, DIALECTS[0]!, 'paced', { fail: 0 }, { headers: { traceparent } })
    const spans = await traceOf(traceparent)
    expect(spans.find((span) => span.name === 'model paced')).toMatchObject({
      status: 2,
      attributes: { 'error.type': expect.any(String) as unknown, 'torchserve_ts.outcome': 'failed' },
    })
    expect(spans.find(isServers)).toMatchObject({ status: 2, attributes: { 'error.type': '503' } })
  })

  test('an unknown model is no error of the server, its path is not in the name, and long texts are cut', async () => {
    const traceparent = ownTrace(3_001)
    await predict(server, { traceparent, 'user-agent': 'x'.repeat(5_000) }, 'nobody-knows')
    const [span, ...others] = await traceOf(traceparent)
    expect(span).toMatchObject({ name: 'POST /predictions/{model_name}', status: 0 })
    expect(span!.attributes).toMatchObject({
      'http.response.status_code': 404,
      'user_agent.original': 'x'.repeat(256),
    })
    expect(others).toEqual([])
  })

  test('chats have the attributes of generative AI, streamed and whole', async () => {
    const expected = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'chat',
      'gen_ai.request.temperature': 0.5,
      'gen_ai.response.model': 'chat',
      'gen_ai.response.finish_reasons': ['stop'],
    }
    for (const stream of [false, true]) {
      const traceparent = ownTrace(4_000 + Number(stream))
      const messages = [{ role: 'user', content: JSON.stringify({ id: 'ai', n: 2 }) }]
      await rawRequest(server.ports.inference, '/v1/chat/completions', {
        method: 'POST',
        body: JSON.stringify({ model: 'chat', messages, temperature: 0.5, stream }),
        headers: { traceparent },
      })
      const span = (await traceOf(traceparent)).find(isServers)!
      expect(span.attributes).toMatchObject(expected)
      expect(span.name).toBe('POST /v1/chat/completions')
    }
  })

  test('texts of a list are cut, as others are', async () => {
    const traceparent = ownTrace(4_500)
    const messages = [{ role: 'user', content: JSON.stringify({ id: 'stops', n: 1 }) }]
    await rawRequest(server.ports.inference, '/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({ model: 'chat', messages, stop: ['end', 'y'.repeat(1_000)] }),
      headers: { traceparent },
    })
    const span = (await traceOf(traceparent)).find(isServers)!
    expect(span.attributes['gen_ai.request.stop_sequences']).toEqual(['end', 'y'.repeat(256)])
  })

  test('the management API is traced by its routes, and probes are not', async () => {
    await server.manage('GET', '/models/told')
    const [span] = await receiver.trace(({ name }) => name === 'GET /models/{model}')
    expect(span!.attributes['http.route']).toBe('/models/{model}')
    await rawRequest(server.ports.inference, '/ping', { method: 'GET' })
    await rawRequest(server.ports.inference, '/v2/health/ready', { method: 'GET' })
    // What came after them has arrived.
    await predict(server, { traceparent: ownTrace(5_000) })
    await traceOf(ownTrace(5_000))
    expect(
      receiver.spans.filter(({ attributes }) => /ping|health/.test(String(attributes['url.path']))),
    ).toEqual([])
  })

  test('the access log has the trace id of HTTP requests and of gRPC calls', async () => {
    const traceparent = ownTrace(6_000)
    await predict(server, { traceparent })
    const grpc = DIALECTS.find(({ port, whole }) => port === 'grpcInference' && whole)!
    const other = ownTrace(6_001)
    await ask(server, grpc, 'told', {}, { headers: { traceparent: other } })
    const log = join(server.folder, 'logs', 'access_log.log')
    const lines = await server.until(
      () => Promise.resolve(readFileSync(log, 'utf8')),
      (text) => [traceparent, other].every((each) => text.includes(`trace_id=${each.split('-')[1]}`)),
    )
    expect(lines).toMatch(/"POST \/predictions\/told HTTP\/1.1" 200 \d+ trace_id=[0-9a-f]{32}\n/)
  })

  test('the metrics of the page are exported with their labels, histograms with their buckets', async () => {
    await predict(server)
    await server.until(
      () => Promise.resolve(receiver.metrics.map(({ name }) => name)),
      (names) => names.includes('torchserve_ts_request_seconds'),
    )
    const metric = (name: string) => receiver.metrics.find((each) => each.name === name)!
    const ended = metric('torchserve_ts_requests_ended_total').sum!
    expect(ended.isMonotonic).toBe(true)
    const { attributes } = ended.dataPoints[0]!
    expect(attributes.map(({ key }) => key)).toEqual(['model_name', 'model_version', 'kind', 'outcome'])
    const [point] = metric('torchserve_ts_request_seconds').histogram!.dataPoints
    expect(point!.bucketCounts).toHaveLength(point!.explicitBounds.length + 1)
    expect(point!.bucketCounts.map(Number).reduce((a, b) => a + b)).toBe(point!.count)
    expect(metric('torchserve_ts_workers').gauge!.dataPoints.length).toBeGreaterThan(0)
    await server.until(
      () => Promise.resolve(receiver.resource.size),
      (size) => size > 0,
    )
    expect(Object.fromEntries(receiver.resource)).toMatchObject({
      'service.name': 'torchserve-ts',
      'service.version': version,
      'deployment.environment': 'test',
      'host.name': hostname(),
      'process.pid': server.pid,
      'process.runtime.name': 'nodejs',
      'process.runtime.version': process.versions.node,
    })
    expect(receiver.metricsResource).toEqual(receiver.resource)
    expect([...receiver.resource.keys()].filter((key) => key.includes('command'))).toEqual([])
  })
})

test('spans are exported over gRPC, and those of the last requests when the server stops', async () => {
  const { endpoint, names } = await grpcReceiver()
  const server = await startServer({
    models: [toldFolder()],
    env: {
      OTEL_TRACES_EXPORTER: 'otlp',
      OTEL_METRICS_EXPORTER: 'none',
      OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc',
      OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
      OTEL_BSP_SCHEDULE_DELAY: '60000',
    },
  })
  await server.ready('told')
  await predict(server, { traceparent: TRACEPARENT })
  expect(await server.stop()).toBe(0)
  expect(names.get(CLIENT.traceId)).toEqual(
    expect.arrayContaining(['POST /predictions/{model_name}', 'model told', 'queue', 'worker']),
  )
})

test('the last metrics are exported when the server stops', async () => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    models: [toldFolder()],
    env: { ...(await receiver.start()), OTEL_METRIC_EXPORT_INTERVAL: '60000' },
  })
  await server.ready('told')
  await predict(server)
  expect(receiver.metrics).toEqual([])
  expect(await server.stop()).toBe(0)
  expect(receiver.metrics.map(({ name }) => name)).toContain('ts_inference_requests_total')
})

test('metrics go over http/protobuf if nothing else is said', async () => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    env: { ...(await receiver.start()), OTEL_EXPORTER_OTLP_METRICS_PROTOCOL: '' },
  })
  await server.until(
    () => Promise.resolve(receiver.exports),
    (exports) => exports.some(({ path }) => path === '/v1/metrics'),
  )
  expect(receiver.exports.map(({ type }) => type)).not.toContain('application/json')
})

test.each([
  ['OTEL_TRACES_SAMPLER', 'nobody_knows'],
  ['OTEL_PROPAGATORS', 'pigeons'],
  ['OTEL_BSP_MAX_QUEUE_SIZE', 'plenty'],
])('a value of %s that is not known is told in the log', async (name, value) => {
  const receiver = new OtlpReceiver()
  const server = await startServer({ env: { ...(await receiver.start()), [name]: value } })
  await server.lines(value)
})

test('a collector that does not answer is told once, and harms no request and no stop', async () => {
  const server = await startServer({
    models: [toldFolder()],
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_BSP_SCHEDULE_DELAY: '20' },
  })
  await server.ready('told')
  for (let count = 0; count < 5; count += 1) expect((await predict(server)).status).toBe(200)
  await server.lines('OpenTelemetry')
  expect(await server.stop()).toBe(0)
})

test('lines of the access log name the trace of the span, whatever header carries contexts', async () => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    models: [toldFolder()],
    env: { ...(await receiver.start()), OTEL_PROPAGATORS: 'b3multi' },
  })
  await server.ready('told')
  const grpc = DIALECTS.find(({ port, whole }) => port === 'grpcInference' && whole)!
  const trace = 'c'.repeat(32)
  const b3 = { 'x-b3-traceid': trace, 'x-b3-spanid': CLIENT.spanId, 'x-b3-sampled': '1' }
  await ask(server, grpc, 'told', {}, { headers: { ...b3, traceparent: TRACEPARENT } })
  await receiver.trace((span) => span.traceId === trace && isServers(span))
  const log = join(server.folder, 'logs', 'access_log.log')
  const text = await server.until(
    () => Promise.resolve(readFileSync(log, 'utf8')),
    (lines) => lines.includes('Predictions'),
  )
  expect(/Predictions.* trace_id=([0-9a-f]+)/.exec(text)?.[1]).toBe(trace)
})

test.each([
  ['a sampler that does not ask the client', { OTEL_TRACES_SAMPLER: 'always_on' }],
  ['contexts in other headers', { OTEL_PROPAGATORS: 'b3multi' }],
])("the client's traceparent does not stop the spans of a job: %s", async (_name, settings) => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    models: [toldFolder()],
    env: { ...(await receiver.start()), ...settings },
  })
  await server.ready('told')
  await predict(server, { traceparent: `00-${CLIENT.traceId}-${CLIENT.spanId}-00` })
  const spans = await receiver.trace(({ name }) => name === 'POST /predictions/{model_name}')
  expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['model told', 'queue', 'worker']))
})

test.each<[number, Record<string, string>]>([
  [0, { OTEL_TRACES_EXPORTER: 'console' }],
  [0, { OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318' }],
  [0, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ' ' }],
  [0, { OTEL_METRICS_EXPORTER: 'none', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [1, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [1, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318' }],
  [1, { OTEL_METRICS_EXPORTER: 'otlp' }],
  [2, { OTEL_METRICS_EXPORTER: 'otlp,console' }],
])('a stop waits for %i exports of metrics with %j', async (count, env) => {
  const readers = metricReaders(env, new PageProducer())
  expect(readers).toHaveLength(count)
})

test.each([
  ['3000000000', 2 ** 31 - 1],
  ['0.001', 1],
  ['-5', 60_000],
])('the interval of metrics is one that a timer can have: %s', (text, interval) => {
  const timers = jest.spyOn(globalThis, 'setInterval')
  const env = { OTEL_METRICS_EXPORTER: 'console', OTEL_METRIC_EXPORT_INTERVAL: text }
  const provider = new MeterProvider({ readers: metricReaders(env, new PageProducer()) })
  expect(timers.mock.calls.map(([, ms]) => ms)).toEqual([interval])
  timers.mockRestore()
  return provider.shutdown()
})

test('without its variables nothing is traced, and the context of the client goes on to the handler', async () => {
  const server = await startServer({ models: [toldFolder()] })
  await server.ready('told')
  const { body, headers } = await predict(server, { traceparent: TRACEPARENT })
  expect(body).toBe(TRACEPARENT)
  expect(headers['traceresponse']).toBeUndefined()
})

test.each<[boolean, Record<string, string>]>([
  [false, {}],
  [false, { OTEL_TRACES_EXPORTER: 'none' }],
  [false, { OTEL_SERVICE_NAME: 'mine' }],
  [false, { OTEL_SDK_DISABLED: 'true', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [false, { OTEL_SDK_DISABLED: ' TRUE ', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [false, { OTEL_EXPORTER_OTLP_ENDPOINT: ' ' }],
  [true, { OTEL_SDK_DISABLED: 'false', OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [true, { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318' }],
  [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://collector:4318/v1/traces' }],
  [true, { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'http://collector:4318/v1/metrics' }],
  [true, { OTEL_TRACES_EXPORTER: 'console' }],
  [true, { OTEL_METRICS_EXPORTER: 'otlp', OTEL_TRACES_EXPORTER: 'none' }],
])('tracing is on: %p with %j', (isOn, env) => {
  expect(isTracingOn(env)).toBe(isOn)
})
