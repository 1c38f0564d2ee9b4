import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, test } from '@jest/globals'
import { diag } from '@opentelemetry/api'
import { OtelTracing } from '../../frontend/observe/traces/otel-tracing.ts'
import { reportTo } from '../../frontend/observe/traces/reports.ts'
import { OtlpReceiver } from '../support/otlp-receiver.ts'

const ENVIRONMENT = { ...process.env }
const NO_HEADERS = { get: () => undefined, delete: () => undefined }

afterEach(() => {
  process.env = { ...ENVIRONMENT }
  diag.disable()
})

/** The SDK reads the variables of its process. */
function exporting(variables: Record<string, string>) {
  process.env = { ...ENVIRONMENT, OTEL_METRICS_EXPORTER: 'none', ...variables }
  const warnings: string[] = []
  const tracing = new OtelTracing(process.env, (warning) => warnings.push(warning))
  const spans = (count: number): void => {
    for (let i = 0; i < count; i += 1) tracing.request('one', NO_HEADERS)!.end(false)
  }
  return { tracing, warnings, spans }
}

test('sends as many together as OTEL_BSP_MAX_EXPORT_BATCH_SIZE says, and what is left at a stop', async () => {
  const receiver = new OtlpReceiver()
  const variables = {
    ...(await receiver.start()),
    OTEL_BSP_SCHEDULE_DELAY: '60000',
    OTEL_SERVICE_NAME: 'mine',
  }
  const { tracing, warnings, spans } = exporting({ ...variables, OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10' })
  spans(25)
  await tracing.close()
  expect(receiver.exports.map((each) => each.spans).sort()).toEqual([10, 10, 5])
  expect(receiver.resource.get('service.name')).toBe('mine')
  expect(warnings).toEqual([])
})

test('drops spans beyond OTEL_BSP_MAX_QUEUE_SIZE, reports it once, and takes more when it has caught up', async () => {
  const receiver = new OtlpReceiver()
  const queue = { OTEL_BSP_MAX_QUEUE_SIZE: '20', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10' }
  const { tracing, warnings, spans } = exporting({ ...(await receiver.start()), ...queue })
  // 10 go under way and 20 wait. In the second round the answer to the last ten may not be here: then
  // 20 wait alone.
  for (const total of [30, 50]) {
    spans(40)
    await receiver.received(total)
  }
  spans(1)
  await tracing.close()
  expect([51, 61]).toContain(receiver.spans.length)
  expect(warnings).toEqual([expect.stringMatching(/^OpenTelemetry: Dropped \d+ spans because maxQueueSize/)])
})

test('an export that fails is reported in one line, without a password of its address', async () => {
  const collector = createServer().listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { port } = collector.address() as AddressInfo
  collector.close()
  await once(collector, 'close')
  const { tracing, warnings, spans } = exporting({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:secret@127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
  })
  spans(1)
  await tracing.close()
  expect(warnings).toEqual([expect.stringMatching(/^OpenTelemetry: the last spans are lost: [^{]+$/)])
  expect(warnings[0]).not.toContain('secret')
})

test.each([
  [['could not parse', "'http://me:secret@[bad'"], "could not parse: 'http://***@[bad'"],
  [['{"stack":"Error\\n at x","message":"","code":"ECONNREFUSED"}'], 'an export failed: ECONNREFUSED'],
  [['{"a":1}'], '{"a":1}'],
  [['{"broken'], '{"broken'],
] as [[string, ...string[]], string][])('a report %j is one line of the log', (pieces, line) => {
  const warnings: string[] = []
  reportTo((warning) => warnings.push(warning))
  diag.warn(...pieces)
  expect(warnings).toEqual([`OpenTelemetry: ${line}`])
})

test.each([
  [['Unsupported OTLP traces protocol: pigeons. Using http/protobuf.'], 'otlp'],
  [[], 'console'],
])('a protocol of OTLP that is not known is reported %j where spans go to %s', async (reports, exporter) => {
  const { tracing, warnings } = exporting({
    OTEL_EXPORTER_OTLP_PROTOCOL: 'pigeons',
    OTEL_TRACES_EXPORTER: exporter,
  })
  await tracing.close()
  expect(warnings).toEqual(reports.map((report) => `OpenTelemetry: ${report}`))
})

test('a stop waits three seconds for a collector that does not answer, and reports the loss', async () => {
  const held: ServerResponse[] = []
  const collector = createServer((_, res) => void held.push(res)).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const { tracing, warnings, spans } = exporting({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
  })
  spans(1)
  await tracing.close()
  expect(warnings).toEqual(['OpenTelemetry: the stop did not wait longer, and the last spans are lost'])
  for (const res of held) res.writeHead(400).end()
  collector.close()
  await once(collector, 'close')
})
