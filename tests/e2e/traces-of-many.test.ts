import { expect, test } from '@jest/globals'
import { ECHO } from '../support/count.ts'
import { ask, DIALECTS } from '../support/dialects.ts'
import { OtlpReceiver, type ReceivedSpan } from '../support/otlp-receiver.ts'
import { rawRequest } from '../support/raw-http.ts'
import { startServer } from '../support/server.ts'

const COUNT = 400
const SPAN_ID = 'b7ad6b7169203331'
const GRPC = DIALECTS.find(({ port, whole }) => port === 'grpcInference' && whole)!

/** A trace id that tells the number of its request. */
const traceOf = (number: number): string => (number + 1).toString(16).padStart(32, '0')

test('spans of many requests at once have their own ids and attributes, whatever the spans before them had', async () => {
  const receiver = new OtlpReceiver()
  const server = await startServer({
    models: [ECHO, ECHO.replace(/^[^=]*/, 'another')],
    // Each batch has requests of all kinds.
    env: { ...(await receiver.start()), OTEL_BSP_SCHEDULE_DELAY: '60000' },
  })
  await Promise.all([server.ready('echo'), server.ready('another')])

  const models = ['echo', 'another', 'nobody-knows'] as const
  const asked = Array.from({ length: COUNT }, async (_, number) => {
    const model = models[number % 3]!
    const headers: Record<string, string> = {
      'user-agent': `agent ${number % 5}`,
      // Some traces begin here.
      ...(number % 4 === 0 ? {} : { traceparent: `00-${traceOf(number)}-${SPAN_ID}-01` }),
    }
    if (number % 7 === 0 && model !== 'nobody-knows') {
      await ask(server, GRPC, model, headers)
      return { number, model, requestId: undefined, trace: undefined }
    }
    const answer = await rawRequest(server.ports.inference, `/predictions/${model}`, {
      body: 'hello',
      headers,
    })
    const [, trace] = answer.headers['traceresponse']!.split('-')
    return { number, model, requestId: answer.headers['x-request-id'], trace }
  })
  const answers = await Promise.all(asked)
  expect(await server.stop()).toBe(0)

  const traces = new Map<string, ReceivedSpan[]>()
  for (const span of receiver.spans) {
    const spans = traces.get(span.traceId) ?? []
    traces.set(span.traceId, [...spans, span])
  }
  const predictions = receiver.spans.filter(({ kind, name }) => kind === 2 && /predictions/i.test(name))
  expect(predictions).toHaveLength(COUNT)
  expect(new Set(receiver.spans.map(({ spanId }) => spanId)).size).toBe(receiver.spans.length)
  for (const { number, model, requestId, trace } of answers) {
    if (trace === undefined) continue
    if (number % 4 !== 0) expect(trace).toBe(traceOf(number))
    const spans = traces.get(trace)!
    const [request] = spans.filter(({ kind }) => kind === 2)
    expect([request!.parentId, request!.attributes]).toEqual([
      number % 4 === 0 ? '' : SPAN_ID,
      expect.objectContaining({
        'url.path': `/predictions/${model}`,
        'user_agent.original': `agent ${number % 5}`,
        'torchserve_ts.request.id': requestId,
        'http.response.status_code': model === 'nobody-knows' ? 404 : 200,
      }),
    ])
    const below = spans.filter(({ kind }) => kind === 1)
    if (model === 'nobody-knows') {
      expect(below).toEqual([])
      continue
    }
    const [job] = below.filter(({ name }) => name === `model ${model}`)
    expect([job!.parentId, job!.attributes]).toEqual([
      request!.spanId,
      expect.objectContaining({
        'torchserve_ts.model.name': model,
        'torchserve_ts.request.id': requestId,
        'torchserve_ts.outcome': 'finished',
      }),
    ])
    expect(below.map(({ name, parentId }) => [name, parentId]).sort()).toEqual([
      [`model ${model}`, request!.spanId],
      ['queue', job!.spanId],
      ['worker', job!.spanId],
    ])
  }
})
