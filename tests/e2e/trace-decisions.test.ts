import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from '@jest/globals'
import { ask, DIALECTS } from '../support/dialects.ts'
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'
import { rawRequest, type RawResponse } from '../support/raw-http.ts'
import { startServer, type Server } from '../support/server.ts'
import { tempDir } from '../support/temp.ts'

const SPAN_ID = 'b7ad6b7169203331'
const GRPC = DIALECTS.find(({ port, whole }) => port === 'grpcInference' && whole)!

/** Answers with the headers that it got of traces, by the names that it got them under. */
const TOLD = `
export default class Told {
  async handle(requests, context) {
    return requests.map((_, index) =>
      JSON.stringify(
        Object.entries(context.requestHeaders(index))
          .filter(([name]) => /^(trace|baggage|b3|x-b3)/i.test(name))
          .sort(),
      ),
    )
  }
}
`

async function started(env: Record<string, string>): Promise<{ server: Server; receiver: OtlpReceiver }> {
  const receiver = new OtlpReceiver()
  const folder = join(tempDir(), 'told')
  mkdirSync(folder)
  writeFileSync(join(folder, 'handler.ts'), TOLD)
  const server = await startServer({
    models: [`told=${folder}`],
    env: { ...(await receiver.start()), ...env },
  })
  await server.ready('told')
  return { server, receiver }
}

function predict({ ports }: Server, headers: Record<string, string> = {}): Promise<RawResponse> {
  return rawRequest(ports.inference, '/predictions/told', { method: 'POST', body: '{}', headers })
}

function told({ body }: RawResponse): Record<string, string> {
  const entries = JSON.parse(body) as [string, string][]
  const found = Object.fromEntries(entries)
  // A header of the client beside that of the server would be one more.
  expect(Object.keys(found).map((name) => name.toLowerCase())).toHaveLength(entries.length)
  return found
}

function traceparent(digit: string, flags: string): string {
  return `00-${digit.repeat(32)}-${SPAN_ID}-${flags}`
}

/** All spans of a trace whose request has ended. */
function spansOf(receiver: OtlpReceiver, digit: string): Promise<readonly ReceivedSpan[]> {
  return receiver.trace(({ traceId, kind }) => traceId === digit.repeat(32) && kind === 2)
}

test('a handler gets a context, and the log an id that leads somewhere, of requests that a sampler leaves out', async () => {
  const { server, receiver } = await started({
    OTEL_TRACES_SAMPLER: 'parentbased_traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0',
  })
  const answers = [await predict(server), await predict(server)]
  const contexts = answers.map((answer) => told(answer)['traceparent']!)
  for (const context of contexts) expect(context).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  const [first, second] = contexts.map((context) => context.split('-')[1]!)
  expect(first).not.toBe(second)
  const grpc = await ask(server, GRPC, 'told', {})
  const [[name, context]] = JSON.parse(grpc.items[0]!.text) as [[string, string]]
  expect(name).toBe('traceparent')
  expect(context).toMatch(/^00-[0-9a-f]{32}-[0-9a-f]{16}-00$/)
  const withBaggage = told(await predict(server, { baggage: 'user=me' }))
  expect(withBaggage).toEqual({ traceparent: expect.stringMatching(/-00$/), baggage: 'user=me' })
  // Nobody finds a trace of them. An error says the id that is in the log.
  expect(answers[0]!.headers['traceresponse']).toBeUndefined()
  const refused = await rawRequest(server.ports.inference, '/predictions/nobody-knows', { body: '{}' })
  const [, refusedId] = /^00-([0-9a-f]{32})-[0-9a-f]{16}-00$/.exec(refused.headers['traceresponse']!)!
  await predict(server, { traceparent: traceparent('b', '00') })
  await ask(server, GRPC, 'told', {}, { headers: { traceparent: traceparent('d', '00') } })
  await ask(server, GRPC, 'nobody-knows', {}).catch(() => undefined)
  const named = [refusedId!, ...['b', 'd'].map((digit) => digit.repeat(32))].map((id) => ` trace_id=${id}\n`)
  const refusedCall = /Predictions HTTP\/2.0" 13 \d+ trace_id=[0-9a-f]{32}\n/
  const log = join(server.folder, 'logs', 'access_log.log')
  const lines = await server.until(
    () => Promise.resolve(readFileSync(log, 'utf8')),
    (text) => named.every((end) => text.includes(end)) && refusedCall.test(text),
  )
  for (const id of [first!, second!, context.split('-')[1]!]) expect(lines).not.toContain(id)
  expect(lines.match(/ trace_id=/g)).toHaveLength(named.length + 1)
  await predict(server, { traceparent: traceparent('a', '01') })
  await spansOf(receiver, 'a')
  expect(receiver.spans.filter(({ traceId }) => traceId !== 'a'.repeat(32))).toEqual([])
})

describe.each([
  ['parentbased_always_on', { '01': true, '00': false }],
  ['parentbased_always_off', { '01': true, '00': false }],
  ['always_on', { '01': true, '00': true }],
  ['traceidratio', { '01': true, '00': true }],
])('%s', (sampler, records) => {
  test('decides about requests of clients with a context, and the handler is told', async () => {
    const { server, receiver } = await started({
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: '1',
    })
    for (const [flags, isRecorded] of Object.entries(records)) {
      const [digit] = flags === '01' ? ['c'] : ['d']
      const answer = await predict(server, { TraceParent: traceparent(digit, flags) })
      const { traceparent: own, ...others } = told(answer)
      expect(others).toEqual({})
      expect(own!.split('-')[1]).toBe(digit.repeat(32))
      expect(own!.endsWith(isRecorded ? '-01' : '-00')).toBe(true)
      expect(answer.headers['traceresponse'] !== undefined).toBe(isRecorded)
      if (isRecorded) expect(await spansOf(receiver, digit)).toHaveLength(4)
    }
    await predict(server, { traceparent: traceparent('e', '01') })
    await spansOf(receiver, 'e')
    expect(receiver.spans.some(({ traceId }) => traceId === 'd'.repeat(32))).toBe(records['00'])
  })
})

test.each([
  ['below that of a client', { traceparent: traceparent('f', '01') }],
  ['of a trace that begins here', {}],
])('spans %s lie within those above them, and the queue ends where the worker begins', async (_, headers) => {
  const { server, receiver } = await started({})
  const before = BigInt(Date.now() - 1) * 1_000_000n
  await predict(server, headers)
  const spans = await receiver.trace(({ name }) => name === 'POST /predictions/{model_name}')
  const after = BigInt(Date.now() + 2) * 1_000_000n
  const byId = new Map(spans.map((span) => [span.spanId, span]))
  for (const { start, end, parentId } of spans) {
    expect(start <= end && start >= before && end <= after).toBe(true)
    const parent = byId.get(parentId)
    if (parent !== undefined) expect(parent.start <= start && end <= parent.end).toBe(true)
  }
  const named = (name: string): ReceivedSpan => spans.find((span) => span.name === name)!
  expect(named('queue').end).toBe(named('worker').start)
})

test.each(['01', '00'])(
  'state and baggage of a client go on to the handler, once, with flags %s',
  async (flags) => {
    const { server } = await started({})
    const sent = { TraceState: 'vendor=1', Baggage: 'user=me' }
    const answer = await predict(server, { traceparent: traceparent('a', flags), ...sent })
    expect(told(answer)).toEqual({
      traceparent: expect.stringMatching(`^00-a{32}-[0-9a-f]{16}-${flags}$`) as unknown,
      tracestate: 'vendor=1',
      baggage: 'user=me',
    })
    expect(told(await predict(server, { baggage: 'user=me' }))).toMatchObject({ baggage: 'user=me' })
  },
)

test('several headers of a name count together, and two contexts are none', async () => {
  const { server } = await started({})
  const sent = { TraceState: 'rojo=1', tracestate: 'congo=2', Baggage: 'a=1', baggage: 'b=2' }
  const { tracestate, baggage } = told(
    await predict(server, { traceparent: traceparent('a', '01'), ...sent }),
  )
  expect([tracestate, baggage]).toEqual(['rojo=1,congo=2', 'a=1,b=2'])
  const two = { traceparent: traceparent('a', '01'), TraceParent: traceparent('b', '01') }
  expect(told(await predict(server, two))['traceparent']).not.toMatch(/^00-(a{32}|b{32})-/)
})

test.each([
  ['one header', { b3: `${'a'.repeat(32)}-${SPAN_ID}-1` }],
  ['several', { 'X-B3-TraceId': 'a'.repeat(32), 'X-B3-SpanId': SPAN_ID, 'X-B3-Sampled': '1' }],
])('with b3, a context in %s is the parent, and the handler gets one', async (_name, headers) => {
  const { server, receiver } = await started({ OTEL_PROPAGATORS: 'b3' })
  const { b3, ...others } = told(await predict(server, { ...headers, traceparent: traceparent('9', '01') }))
  expect(others).toEqual({ traceparent: traceparent('9', '01') })
  const spans = await spansOf(receiver, 'a')
  expect(spans.find(({ kind }) => kind === 2)!.parentId).toBe(SPAN_ID)
  const model = spans.find(({ name }) => name === 'model told')!
  expect(b3).toBe(`${'a'.repeat(32)}-${model.spanId}-1`)
})

test('the limits of the variables hold for attributes and events', async () => {
  const { server, receiver } = await started({
    OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT: '3',
    OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT: '5',
    OTEL_SPAN_EVENT_COUNT_LIMIT: '0',
    OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment=long-enough',
  })
  await predict(server, { traceparent: traceparent('a', '01') })
  const spans = await spansOf(receiver, 'a')
  for (const { attributes, events } of spans) {
    expect(Object.keys(attributes).length).toBeLessThanOrEqual(3)
    for (const value of Object.values(attributes)) expect(String(value).length).toBeLessThanOrEqual(5)
    expect(events).toEqual([])
  }
  expect(spans.find(({ name }) => name === 'model told')).toMatchObject({
    droppedAttributesCount: 3,
    droppedEventsCount: 1,
  })
  expect(receiver.resource.get('deployment.environment')).toBe('long-enough')
})

test('where only metrics are exported, requests have no trace, and the context of the client goes on', async () => {
  const { server, receiver } = await started({ OTEL_TRACES_EXPORTER: 'none' })
  const sent = traceparent('a', '01')
  const answer = await predict(server, { traceparent: sent })
  expect(told(answer)).toEqual({ traceparent: sent })
  expect(answer.headers['traceresponse']).toBeUndefined()
  await server.until(
    () => Promise.resolve(receiver.metrics.length),
    (count) => count > 0,
  )
  expect(receiver.spans).toEqual([])
})
