import { afterEach, describe, expect, test } from '@jest/globals'
import { diag, ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  SamplingDecision,
  SimpleSpanProcessor,
  TracerProvider,
} from '@opentelemetry/sdk-trace'
import { splitHeaders } from '../../common/headers.ts'
import { spanProcessors } from '../../frontend/observe/traces/exporters.ts'
import { OtelSpans } from '../../frontend/observe/traces/otel-spans.ts'
import { reportTo } from '../../frontend/observe/traces/reports.ts'
import { propagatorOf, samplerOf, spanLimits } from '../../frontend/observe/traces/sdk-settings.ts'
import type { Environment } from '../../frontend/observe/traces/start.ts'
import type { TracedJob } from '../../frontend/observe/traces/tracing.ts'
import { TraceHeaders, traceparentOf } from '../../frontend/observe/traces/trace-headers.ts'
import { checkVariables } from '../../frontend/observe/traces/variables.ts'

const SPAN = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }

afterEach(() => diag.disable())

/** Headers of a client. */
class Headers {
  readonly map: Map<string, string>

  constructor(headers: Record<string, string>) {
    this.map = new Map(Object.entries(headers))
  }

  get(name: string): string | undefined {
    return this.map.get(name)
  }

  delete(name: string): void {
    this.map.delete(name)
  }
}

describe('samplers of the variables', () => {
  test.each<[string, string | undefined, boolean, boolean, boolean]>([
    ['always_on', undefined, true, true, true],
    ['always_off', undefined, false, false, false],
    ['traceidratio', '1', true, true, true],
    ['traceidratio', '0', false, false, false],
    ['parentbased_always_on', undefined, true, true, false],
    ['parentbased_always_off', undefined, false, true, false],
    ['parentbased_traceidratio', '1', true, true, false],
    ['parentbased_traceidratio', '0', false, true, false],
    ['', undefined, true, true, false],
    ['nobody_knows', undefined, true, true, false],
    ['traceidratio', '', true, true, true],
    ['traceidratio', '1.5', true, true, true],
    ['traceidratio', '-1', true, true, true],
    ['traceidratio', ' ', true, true, true],
    [' always_off ', undefined, false, false, false],
  ])('%s %s: alone %s, below a sampled span %s, below another %s', (name, arg, alone, below, belowOther) => {
    const sampler = samplerOf({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: arg })
    const parents = [undefined, { ...SPAN, isRemote: true }, { ...SPAN, isRemote: true, traceFlags: 0 }]
    const decisions = parents.map((parent) => {
      const context = parent === undefined ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent)
      return sampler.shouldSample(context, SPAN.traceId, 'one', SpanKind.SERVER, {}, []).decision
    })
    expect(decisions.map((each) => each === SamplingDecision.RECORD_AND_SAMPLED)).toEqual([
      alone,
      below,
      belowOther,
    ])
  })
})

describe('contexts in headers', () => {
  const W3C = propagatorOf({})
  const OWN = traceparentOf(SPAN.traceId, 'c'.repeat(16), true)

  test('a request without one has the root context, and keeps its headers', () => {
    const headers = new Headers({ host: 'here', 'content-type': 'text/plain' })
    expect(new TraceHeaders(W3C).take(headers)).toBe(ROOT_CONTEXT)
    expect([...headers.map.keys()]).toEqual(['host', 'content-type'])
  })

  test('one of the client is taken from its headers, with state and baggage, and goes on with the new span', () => {
    const trusted = { tracestate: 'vendor=1', baggage: 'user=me' }
    const traceparent = traceparentOf(SPAN.traceId, SPAN.spanId, true)
    const headers = new Headers({ host: 'here', traceparent, ...trusted })
    const contexts = new TraceHeaders(W3C)
    const context = contexts.take(headers)
    expect(trace.getSpanContext(context)).toMatchObject(SPAN)
    expect([...headers.map.keys()]).toEqual(['host'])
    expect(splitHeaders(contexts.lines(OWN, context))).toEqual({ traceparent: OWN, ...trusted })
  })

  test.each<Record<string, string>>([{ tracestate: 'vendor=1' }, { baggage: 'user=me' }])(
    'with only %j, that goes on',
    (more) => {
      const traceparent = traceparentOf(SPAN.traceId, SPAN.spanId, true)
      const contexts = new TraceHeaders(W3C)
      const context = contexts.take(new Headers({ traceparent, ...more }))
      expect(splitHeaders(contexts.lines(OWN, context))).toEqual({ traceparent: OWN, ...more })
    },
  )

  test.each([
    ['malformed', { traceparent: 'nothing', tracestate: 'vendor=1' }],
    ['without a span', { tracestate: 'vendor=1' }],
  ])('the state of a context that is %s does not go on', (_name, sent) => {
    const headers = new Headers(sent)
    const contexts = new TraceHeaders(W3C)
    const context = contexts.take(headers)
    expect([...headers.map.keys()]).toEqual([])
    expect(splitHeaders(contexts.lines(OWN, context))).toEqual({ traceparent: OWN })
  })

  test('without propagators nothing is taken and nothing is written', () => {
    const contexts = new TraceHeaders(propagatorOf({ OTEL_PROPAGATORS: 'none' }))
    const headers = new Headers({ traceparent: OWN })
    expect(contexts.take(headers)).toBe(ROOT_CONTEXT)
    expect([...headers.map.keys()]).toEqual(['traceparent'])
    expect(contexts.lines(OWN, ROOT_CONTEXT)).toBe('')
  })

  test.each([
    ['', { traceparent: OWN }],
    [' baggage , tracecontext,baggage', { traceparent: OWN }],
    ['tracecontext', { traceparent: OWN }],
    ['baggage', {}],
    ['b3', { b3: `${SPAN.traceId}-${'c'.repeat(16)}-1` }],
    ['b3multi', { 'x-b3-traceid': SPAN.traceId, 'x-b3-spanid': 'c'.repeat(16), 'x-b3-sampled': '1' }],
    ['jaeger,tracecontext', { traceparent: OWN }],
    ['tracecontext,b3', { traceparent: OWN, b3: `${SPAN.traceId}-${'c'.repeat(16)}-1` }],
    ['tracecontext,none', {}],
    ['pigeons', {}],
    ['tracecontext,tracecontext', { traceparent: OWN }],
  ])('with OTEL_PROPAGATORS=%s a span is %j', (name, wanted) => {
    const contexts = new TraceHeaders(propagatorOf({ OTEL_PROPAGATORS: name }))
    const lines = contexts.lines(OWN, ROOT_CONTEXT)
    expect(splitHeaders(lines)).toEqual(wanted)
    // Each is there once.
    expect(lines.split('\n')).toHaveLength(2 * Object.keys(wanted).length + 1)
    expect(contexts.isPlain(ROOT_CONTEXT)).toBe(lines === `traceparent\n${OWN}\n`)
  })
})

describe('limits of spans', () => {
  test.each<[Record<string, string>, (number | undefined)[]]>([
    [{}, [undefined, 256, undefined]],
    [{ OTEL_ATTRIBUTE_COUNT_LIMIT: '7' }, [7, 256, undefined]],
    [{ OTEL_ATTRIBUTE_COUNT_LIMIT: '7', OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '9' }, [9, 256, undefined]],
    [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '0' }, [0, 256, undefined]],
    [{ OTEL_SPAN_EVENT_COUNT_LIMIT: '0' }, [undefined, 256, 0]],
    [{ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10' }, [undefined, 10, undefined]],
    [{ OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10000' }, [undefined, 256, undefined]],
    [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: 'many' }, [undefined, 256, undefined]],
  ])('%j: attributes, characters, events %j', (env, wanted) => {
    const { attributeCountLimit, attributeValueLengthLimit, eventCountLimit } = spanLimits(env)
    expect([attributeCountLimit, attributeValueLengthLimit, eventCountLimit]).toEqual(wanted)
  })
})

describe('spans of requests and jobs', () => {
  const MODEL = { name: 'told', version: '1.0' }

  function spans(env: Environment = {}) {
    const exporter = new InMemorySpanExporter()
    const spanProcessors = [new SimpleSpanProcessor({ exporter })]
    const provider = new TracerProvider({
      spanProcessors,
      sampler: samplerOf(env),
      spanLimits: spanLimits(env),
    })
    const made = new OtelSpans(provider.getTracer('test'), new TraceHeaders(propagatorOf({})))
    return { made, ended: () => exporter.getFinishedSpans() }
  }

  function jobOf(createdAt: number): TracedJob {
    const request = { headers: '', requestId: 'one', method: 'handle' }
    const times = { createdAt, startedAt: createdAt + 1, firstResponseAt: undefined }
    return { request, ...times, outcome: 'finished', errorCode: undefined, streaming: false }
  }

  test('a job that no client asked for begins a trace, at the time of the clock', () => {
    const { ended, made } = spans()
    const before = Date.now() - 1
    const job = jobOf(performance.now() - 1)
    made.job(job, MODEL).end(job)
    const after = Date.now() + 2
    expect(ended().map(({ name }) => name)).toEqual(['queue', 'worker', 'model told'])
    for (const { startTime } of ended()) {
      const start = startTime[0] * 1e3 + startTime[1] / 1e6
      expect([start >= before - 1, start <= after]).toEqual([true, true])
    }
    const model = ended()[2]!
    expect(model.parentSpanContext).toBeUndefined()
    const { traceId, spanId } = model.spanContext()
    expect(job.request.headers).toBe(`traceparent\n${traceparentOf(traceId, spanId, true)}\n`)
  })

  test('a job that a sampler leaves out is not recorded, and its handler is told', () => {
    const { ended, made } = spans({ OTEL_TRACES_SAMPLER: 'always_off' })
    const job = jobOf(performance.now())
    made.job(job, MODEL).end(job)
    expect(ended()).toEqual([])
    expect(job.request.headers).toMatch(/^traceparent\n00-[0-9a-f]{32}-[0-9a-f]{16}-00\n$/)
  })

  test('a refused job is an error with its code', () => {
    const { ended, made } = spans()
    made.job(jobOf(performance.now()), MODEL).refused('QUEUE_FULL')
    expect(ended().map(({ status, attributes }) => [status.code, attributes['error.type']])).toEqual([
      [2, 'QUEUE_FULL'],
    ])
  })

  test('spans have the state of the trace that the client named', () => {
    const { ended, made } = spans()
    const traceparent = traceparentOf(SPAN.traceId, SPAN.spanId, true)
    made.request('POST', new Headers({ traceparent, tracestate: 'vendor=1' })).end(false)
    expect(
      ended().map((span) => [span.spanContext().traceState?.serialize(), span.spanContext().traceId]),
    ).toEqual([['vendor=1', SPAN.traceId]])
    expect(ended()[0]!.parentSpanContext?.isRemote).toBe(true)
  })

  test('what comes after the end is dropped, and nothing is reported of it; lists are cut', () => {
    const { ended, made } = spans()
    const warnings: string[] = []
    reportTo((warning) => warnings.push(warning))
    const span = made.request('POST', new Headers({}))
    span.set(['a', 1, 'b', undefined, 'list', Array<string>(200).fill('x')])
    span.rename('GET', '/a')
    span.end(false)
    span.set(['a', 2, 'late', true])
    span.rename('GET', '/b')
    expect(ended().map(({ name, attributes }) => [name, attributes])).toEqual([
      ['GET /a', { a: 1, list: Array<string>(128).fill('x') }],
    ])
    expect(warnings).toEqual([])
  })
})

test.each([
  [1, {}],
  [1, { OTEL_TRACES_EXPORTER: 'otlp' }],
  [1, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  [1, { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }],
  [3, { OTEL_TRACES_EXPORTER: 'otlp, console ,zipkin,otlp' }],
  [0, { OTEL_TRACES_EXPORTER: 'none' }],
  [1, { OTEL_TRACES_EXPORTER: 'otlp,none' }],
  [1, { OTEL_TRACES_EXPORTER: 'console,none' }],
  [0, { OTEL_TRACES_EXPORTER: 'nobody_knows' }],
])('spans go to %i places with %j', async (count, env) => {
  const processors = spanProcessors(env)
  expect(processors).toHaveLength(count)
  await Promise.all(processors.map((processor) => processor.shutdown()))
})

test.each([
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://a:4318',
      OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'HTTPS://b/v1/traces',
    },
    [],
  ],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:4318' }, ['OTEL_EXPORTER_OTLP_ENDPOINT']],
  [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'a:4317', OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, []],
  [
    { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'a:4318', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
    ['OTEL_EXPORTER_OTLP_METRICS_ENDPOINT'],
  ],
  [
    {
      OTEL_EXPORTER_OTLP_ENDPOINT: 'a:4317',
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc',
      OTEL_METRICS_EXPORTER: 'none',
    },
    [],
  ],
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'a:4317', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'grpc' },
    ['OTEL_EXPORTER_OTLP_ENDPOINT'],
  ],
  [{ OTEL_TRACES_EXPORTER: 'console' }, []],
])('an address of a collector that is no URL is told at the start: %j', (env, names) => {
  const warnings: string[] = []
  checkVariables(env, (message) => warnings.push(message))
  const told = 'must be a URL such as http://localhost:4318; nothing is exported to it'
  expect(warnings).toEqual(names.map((name) => `OpenTelemetry: ${name} ${told}`))
})

const NUMBERS = [
  ...['OTEL_BSP_MAX_QUEUE_SIZE', 'OTEL_BSP_SCHEDULE_DELAY', 'OTEL_BSP_EXPORT_TIMEOUT'],
  ...['OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 'OTEL_METRIC_EXPORT_INTERVAL', 'OTEL_METRIC_EXPORT_TIMEOUT'],
  ...['OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT', 'OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT'],
]
const COUNTS = [
  ...['OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT', 'OTEL_ATTRIBUTE_COUNT_LIMIT', 'OTEL_SPAN_EVENT_COUNT_LIMIT'],
]

test.each([
  ['many', [...NUMBERS, ...COUNTS]],
  ['-1', [...NUMBERS, ...COUNTS]],
  ['0', NUMBERS],
  ['Infinity', NUMBERS],
  ['1', []],
  ['', []],
  [' ', []],
])('a variable that must be a number and is "%s" is told at the start', (value, names) => {
  const warnings: string[] = []
  const env = Object.fromEntries([...NUMBERS, ...COUNTS].map((name) => [name, value]))
  checkVariables(env, (message) => warnings.push(message))
  const told = (name: string): string => {
    const wanted = COUNTS.includes(name) ? 'not less than 0' : 'greater than 0'
    return `OpenTelemetry: ${name} must be a number ${wanted}, and is "${value}": the default holds`
  }
  expect(warnings).toEqual(names.map(told))
})
