import { describe, expect, test } from '@jest/globals'
import { ROOT_CONTEXT, trace } from '@opentelemetry/api'
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import { splitHeaders } from '../../common/header-lines.ts'
import { propagatorOf } from '../../frontend/observe/traces/propagators.ts'
import { RecordedSpan } from '../../frontend/observe/traces/recorded-span.ts'
import { RequestTraces } from '../../frontend/observe/traces/request-traces.ts'
import { RootTraces } from '../../frontend/observe/traces/root-traces.ts'
import { samplerOf } from '../../frontend/observe/traces/sampler.ts'
import { RandomWords, SpanId, TraceId } from '../../frontend/observe/traces/span-ids.ts'
import { SpanLimits } from '../../frontend/observe/traces/span-limits.ts'
import { encodedBatches } from '../../frontend/observe/traces/batch-settings.ts'
import { spanProcessors } from '../../frontend/observe/traces/span-processors.ts'
import type { EndedSpan } from '../../frontend/observe/traces/span-rows.ts'
import type { Environment } from '../../frontend/observe/traces/start.ts'
import { otlpProtocol, takesEncoded, traceExporters } from '../../frontend/observe/traces/trace-exporters.ts'
import type { TracedJob } from '../../frontend/observe/traces/tracing.ts'
import { TraceHeaders, traceparentOf } from '../../frontend/observe/traces/trace-headers.ts'
import { checkVariables } from '../../frontend/observe/traces/variable-checks.ts'

const SPAN = { traceId: 'a'.repeat(32), spanId: 'b'.repeat(16), traceFlags: 1 }

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

/** Draws so many traces that begin here. */
function drawn(count: number, bound = 2 ** 32, random = new RandomWords()) {
  const roots = new RootTraces(random, bound)
  return Array.from({ length: count }, () => {
    const isRecorded = roots.next()
    return { isRecorded, id: roots.id, line: roots.line, traceparent: roots.traceparent }
  })
}

describe('ids', () => {
  test('of spans have their digits, and none comes twice', () => {
    const random = new RandomWords()
    const spans = Array.from({ length: 20_000 }, () => random.span().text)
    expect(spans.filter((id) => !/^[0-9a-f]{16}$/.test(id) || /^0+$/.test(id))).toEqual([])
    expect(new Set(spans).size).toBe(20_000)
  })

  test('of traces and of their first spans stand in the header of each, and none comes twice', () => {
    const roots = drawn(20_000)
    const malformed = roots.filter(
      ({ line }) => !/^traceparent\n00-[0-9a-f]{32}-[0-9a-f]{16}-00\n$/.test(line),
    )
    expect(malformed).toEqual([])
    for (const { id, line, traceparent } of roots) {
      expect(line).toBe(`traceparent\n${traceparent}\n`)
      expect(traceparent.slice(3, 35)).toBe(id.text)
      expect(TraceId.of(id.text)).toEqual(id)
    }
    expect(new Set(roots.map(({ id }) => id.text)).size).toBe(20_000)
    expect(new Set(roots.map(({ traceparent }) => traceparent.slice(36, 52))).size).toBe(20_000)
  })

  test('differ in every digit', () => {
    const seen = Array.from({ length: 49 }, () => new Set<string>())
    for (const { traceparent } of drawn(1_000))
      for (const [at, digit] of traceparent.slice(3, 52).split('').entries()) seen[at]!.add(digit)
    expect(seen.map(({ size }) => size)).toEqual([...Array(32).fill(16), 1, ...Array(16).fill(16)])
  })

  test.each([
    ['of a trace', [0, 0, 0, 0, 1, 1]],
    ['of the first span of a trace', [1, 1, 1, 1, 0, 0]],
  ])('%s with only zeros are drawn again', (_what, words) => {
    let draws = 0
    const random = new RandomWords((all) => {
      draws += 1
      return draws === 1 ? all.fill(0x5a5a5a5a).set(words) : all.fill(0x5a5a5a5a)
    })
    expect(drawn(1, 2 ** 32, random)[0]!.traceparent).toBe(`00-${'5a'.repeat(16)}-${'5a'.repeat(8)}-00`)
  })

  test('of spans with only zeros are drawn again, those with some are not', () => {
    const random = new RandomWords((all) => all.fill(0).set([0, 0, 0, 7, -1, 0]))
    expect([random.span().text, random.span().text]).toEqual(['0000000000000007', 'ffffffff00000000'])
  })
})

describe('samplers of the variables', () => {
  const SAMPLED = { ...SPAN, isRemote: true }
  const DROPPED = { ...SAMPLED, traceFlags: 0 }

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
    expect(sampler.rootBound).toBe(alone ? 2 ** 32 : 0)
    expect([sampler.samples(SAMPLED), sampler.samples(DROPPED)]).toEqual([below, belowOther])
  })

  test.each([
    [1, true],
    [3, true],
    [0, false],
    [2, false],
  ])('flags of a client may have bits that we do not know: %i is sampled: %s', (traceFlags, wanted) => {
    expect(samplerOf({}).samples({ ...SAMPLED, traceFlags })).toBe(wanted)
  })

  test('none samples nothing, not even an id of which the words cancel each other out', () => {
    expect(drawn(1, 0, new RandomWords((all) => all.fill(1)))[0]!.isRecorded).toBe(false)
  })

  test('a ratio samples about its share of our ids, and the same as the sampler of the SDK', () => {
    const env = { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' }
    const sampler = samplerOf(env)
    const sdk = new TraceIdRatioBasedSampler(0.1)
    const roots = drawn(20_000, sampler.rootBound)
    for (const { id, isRecorded } of roots) {
      const { decision } = sdk.shouldSample(ROOT_CONTEXT, id.text)
      expect(isRecorded).toBe(decision === SamplingDecision.RECORD_AND_SAMPLED)
      expect(sampler.samples({ ...SPAN, traceId: id.text })).toBe(isRecorded)
    }
    const sampled = roots.filter(({ isRecorded }) => isRecorded).length
    expect(sampled).toBeGreaterThan(1_500)
    expect(sampled).toBeLessThan(2_500)
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
  test.each<[Record<string, string>, { attributes: number; events: number; text: number }]>([
    [{}, { attributes: 128, events: 128, text: 256 }],
    [{ OTEL_ATTRIBUTE_COUNT_LIMIT: '7' }, { attributes: 7, events: 128, text: 256 }],
    [
      { OTEL_ATTRIBUTE_COUNT_LIMIT: '7', OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '9' },
      { attributes: 9, events: 128, text: 256 },
    ],
    [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '0' }, { attributes: 0, events: 128, text: 256 }],
    [{ OTEL_SPAN_EVENT_COUNT_LIMIT: '0' }, { attributes: 128, events: 0, text: 256 }],
    [{ OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10' }, { attributes: 128, events: 128, text: 10 }],
    [{ OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT: '10000' }, { attributes: 128, events: 128, text: 256 }],
    [{ OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: 'many' }, { attributes: 128, events: 128, text: 256 }],
  ])('%j', (env, { text, ...counts }) => {
    const limits = new SpanLimits(env)
    expect({ attributes: limits.attributes, events: limits.events }).toEqual(counts)
    expect(limits.cut('x'.repeat(1_000))).toHaveLength(text)
    expect(limits.cut(['x'.repeat(1_000)])).toEqual(['x'.repeat(text)])
  })
})

test('an attribute that is set again has its last value; those that are undefined or too late are not there', () => {
  const ended: EndedSpan[] = []
  const recording = {
    limits: new SpanLimits({}),
    outlet: { add: (span: EndedSpan) => void ended.push(span) },
  }
  const own = { id: TraceId.of(SPAN.traceId), state: undefined, client: ROOT_CONTEXT, epoch: 0 }
  const span = new RecordedSpan(recording, own, 'one', SpanId.of(SPAN.spanId), undefined, 1_000)
  span.set(['a', 1, 'b', undefined, 'c', 'x'])
  span.set(['c', 'y', 'd', true, 'a', undefined])
  span.ended(2_000)
  // The outlet may have kept them.
  span.set(['a', 2, 'e', 'late'])
  expect(ended.map(({ attributes, end }) => [attributes, end])).toEqual([
    [['a', 1, 'c', 'y', 'd', true], 2_000],
  ])
})

describe('traces of requests and jobs', () => {
  const MODEL = { name: 'told', version: '1.0' }

  function traces(env: Environment = {}) {
    const ended: EndedSpan[] = []
    return { ended, made: new RequestTraces(env, propagatorOf({}), { add: (span) => void ended.push(span) }) }
  }

  function jobOf(createdAt: number): TracedJob {
    const request = { headers: '', requestId: 'one', method: 'handle' }
    const times = { createdAt, startedAt: createdAt + 1, firstResponseAt: undefined }
    return { request, ...times, outcome: 'finished', errorCode: undefined, streaming: false }
  }

  test('a job that no client asked for begins a trace, at the time of the clock', () => {
    const { ended, made } = traces()
    const before = Date.now() - 1
    const job = jobOf(performance.now())
    made.job(job, MODEL).end(job)
    const after = Date.now() + 2
    expect(ended.map(({ name }) => name)).toEqual(['queue', 'worker', 'model told'])
    for (const { start } of ended) expect([start >= before, start <= after]).toEqual([true, true])
    const { traceId, spanId, parentId } = ended[2]!
    expect(parentId).toBeUndefined()
    expect(job.request.headers).toBe(`traceparent\n${traceparentOf(traceId.text, spanId.text, true)}\n`)
  })

  test('a job that a sampler leaves out is not recorded, and its handler is told', () => {
    const { ended, made } = traces({ OTEL_TRACES_SAMPLER: 'always_off' })
    const job = jobOf(performance.now())
    made.job(job, MODEL).end(job)
    expect(ended).toEqual([])
    expect(job.request.headers).toMatch(/^traceparent\n00-[0-9a-f]{32}-[0-9a-f]{16}-00\n$/)
  })

  test('spans have the state of the trace that the client named', () => {
    const { ended, made } = traces()
    const traceparent = traceparentOf(SPAN.traceId, SPAN.spanId, true)
    made.request('POST', new Headers({ traceparent, tracestate: 'vendor=1' })).end(false)
    expect(ended.map(({ traceState, traceId }) => [traceState, traceId.text])).toEqual([
      ['vendor=1', SPAN.traceId],
    ])
  })
})

test.each([
  ['a request below a span of the client', true, true, true],
  ['a request with which a trace begins', true, false, false],
  ['a job', false, true, false],
])('the parent of %s is remote: %s, %s: %s', (_what, isServer, hasParent, told) => {
  const recording = { limits: new SpanLimits({}), outlet: { add: () => undefined } }
  const own = { id: TraceId.of(SPAN.traceId), state: undefined, client: ROOT_CONTEXT, epoch: 0 }
  const id = SpanId.of(SPAN.spanId)
  const span = new RecordedSpan(recording, own, 'one', id, hasParent ? id : undefined, 1_000, isServer)
  expect(span.isParentRemote).toBe(told)
})

test.each([
  [true, {}],
  [true, { OTEL_EXPORTER_OTLP_PROTOCOL: 'pigeons' }],
  [true, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/protobuf' }],
  [false, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  [false, { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }],
  [false, { OTEL_TRACES_EXPORTER: 'otlp,console' }],
  [false, { OTEL_TRACES_EXPORTER: 'zipkin' }],
])('spans go out as they are encoded: %s with %j', (wanted, env) => {
  expect(takesEncoded(traceExporters(env), env)).toBe(wanted)
})

test.each([
  [1, {}],
  [1, { OTEL_TRACES_EXPORTER: 'otlp' }],
  [1, { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }],
  [1, { OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }],
  [3, { OTEL_TRACES_EXPORTER: 'otlp, console ,zipkin,otlp' }],
  [0, { OTEL_TRACES_EXPORTER: 'none' }],
  [1, { OTEL_TRACES_EXPORTER: 'otlp,none' }],
  [0, { OTEL_TRACES_EXPORTER: 'nobody_knows' }],
])('spans go to %i places with %j', async (count, env) => {
  const exporters = traceExporters(env)
  const processors = spanProcessors(exporters, env)
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

test.each([
  ['grpc', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: ' ' }],
  ['http/json', { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'http/json' }],
  [undefined, { OTEL_EXPORTER_OTLP_PROTOCOL: '' }],
])('the protocol is %s with %j', (protocol, env) => {
  expect(otlpProtocol(env)).toBe(protocol)
})

const DEFAULTS = { size: 8_192, delayMs: 5_000, maxWaiting: 32_768, timeoutMs: 30_000 }

test.each([
  [{}, { size: 8_192, delayMs: 5_000, maxWaiting: 32_768 }],
  [
    { MAX_EXPORT_BATCH_SIZE: '100', SCHEDULE_DELAY: '50' },
    { size: 100, delayMs: 50, maxWaiting: 32_768 },
  ],
  [{ MAX_QUEUE_SIZE: '100' }, { size: 50, delayMs: 5_000, maxWaiting: 100 }],
  [
    { MAX_QUEUE_SIZE: '20000', MAX_EXPORT_BATCH_SIZE: '20000' },
    { size: 8_192, delayMs: 5_000, maxWaiting: 20_000 },
  ],
  [{ MAX_QUEUE_SIZE: '3' }, { size: 1, delayMs: 5_000, maxWaiting: 3 }],
  // Longer than a timer may have.
  [{ SCHEDULE_DELAY: '1e12' }, { size: 8_192, delayMs: 2_147_483_647, maxWaiting: 32_768 }],
  [{ EXPORT_TIMEOUT: '1e12' }, { timeoutMs: 2_147_483_647 }],
  [{ EXPORT_TIMEOUT: '50' }, { timeoutMs: 50 }],
  [
    { MAX_QUEUE_SIZE: '-1', MAX_EXPORT_BATCH_SIZE: 'x' },
    { size: 8_192, delayMs: 5_000, maxWaiting: 32_768 },
  ],
])('with OTEL_BSP_%j batches of encoded spans are %j', (variables, wanted) => {
  const env = Object.fromEntries(
    Object.entries(variables).map(([name, value]) => [`OTEL_BSP_${name}`, value]),
  )
  expect(encodedBatches(env)).toEqual({ ...DEFAULTS, ...wanted })
})

test('none among exporters leaves the default', () => {
  expect(traceExporters({ OTEL_TRACES_EXPORTER: 'console,none' })).toEqual(['otlp'])
})
