import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, jest, test } from '@jest/globals'
import { diag } from '@opentelemetry/api'
import fc from 'fast-check'
import { reportTo } from '../../frontend/observe/traces/reports.ts'
import { SpanExport } from '../../frontend/observe/traces/span-export.ts'
import { SpanId, TraceId } from '../../frontend/observe/traces/span-ids.ts'
import { type EndedSpan, readSpans, SpanRows } from '../../frontend/observe/traces/span-rows.ts'
import type { Environment } from '../../frontend/observe/traces/start.ts'
import type { TraceExporter } from '../../frontend/observe/traces/trace-exporters.ts'
import { OtlpReceiver } from '../support/otlp-receiver.ts'

/** Rows that may wait for the thread, and encoded spans that may wait for their export. */
const MAX_ROWS = 8_192
const MAX_ENCODED = 32_768

function spanOf(name: string): EndedSpan {
  return {
    name,
    isServer: false,
    traceId: TraceId.of('a'.repeat(32)),
    spanId: SpanId.of('b'.repeat(16)),
    traceState: undefined,
    parentId: undefined,
    isParentRemote: false,
    start: 1_000,
    end: 2_000,
    failed: false,
    attributes: [],
    events: [],
    droppedAttributes: 0,
    droppedEvents: 0,
  }
}

describe('spans on their way to the thread', () => {
  const text = fc.string({ maxLength: 8 })
  const value = fc.oneof(text, fc.double({ noNaN: true }), fc.boolean(), fc.array(text, { maxLength: 3 }))
  const pairs = <T>(of: fc.Arbitrary<T>): fc.Arbitrary<(string | T)[]> =>
    fc.array(fc.tuple(text, of), { maxLength: 4 }).map((list) => list.flatMap<string | T>((pair) => pair))
  const digits = (count: number): fc.Arbitrary<string> =>
    fc.string({ unit: fc.constantFrom('0', '7', 'a', 'f'), minLength: count, maxLength: count })
  const spanId = digits(16).map((id) => SpanId.of(id))
  const span: fc.Arbitrary<EndedSpan> = fc.record({
    name: text,
    isServer: fc.boolean(),
    traceId: digits(32).map((id) => TraceId.of(id)),
    spanId,
    traceState: fc.option(text, { nil: undefined }),
    parentId: fc.option(spanId, { nil: undefined }),
    isParentRemote: fc.boolean(),
    start: fc.double({ noNaN: true }),
    end: fc.double({ noNaN: true }),
    failed: fc.boolean(),
    attributes: pairs(value),
    events: pairs(fc.integer()),
    droppedAttributes: fc.nat(),
    droppedEvents: fc.nat(),
  })

  test('are read as they were written, cloned in between', () => {
    fc.assert(
      fc.property(fc.array(span, { maxLength: 5 }), (spans) => {
        const rows = new SpanRows()
        // What was taken is not taken again.
        for (let turn = 0; turn < 2; turn += 1) {
          for (const each of spans) rows.add(each)
          expect([...readSpans(structuredClone(rows.take()))]).toEqual(spans)
        }
      }),
    )
  })
})

/** With what it warned of. */
function exporting(env: Environment, encoded: boolean, exporters: readonly TraceExporter[] = ['otlp']) {
  const warnings: string[] = []
  return { spans: new SpanExport({ exporters, encoded }, env, (warning) => warnings.push(warning)), warnings }
}

describe.each([true, false])('a thread that exports, spans encoded: %s', (encoded) => {
  async function started(more: Environment = {}) {
    const receiver = new OtlpReceiver()
    // Rows wait twice: for the thread, and in a queue of the SDK.
    const queue = encoded ? {} : { OTEL_BSP_MAX_QUEUE_SIZE: '100000' }
    const env = { ...process.env, ...(await receiver.start()), ...queue, ...more }
    return { receiver, ...exporting(env, encoded) }
  }

  test('sends what a span has, with its resource', async () => {
    const { receiver, spans, warnings } = await started({ OTEL_SERVICE_NAME: 'mine' })
    spans.add({
      ...spanOf('one'),
      isServer: true,
      parentId: SpanId.of('c'.repeat(16)),
      failed: true,
      attributes: ['text', 'a', 'number', 2, 'list', ['x', 'y']],
      events: ['first response', 1_500],
    })
    await spans.close()
    await spans.terminate()
    expect(receiver.spans).toMatchObject([
      {
        name: 'one',
        kind: 2,
        traceId: 'a'.repeat(32),
        spanId: 'b'.repeat(16),
        parentId: 'c'.repeat(16),
        status: 2,
        attributes: { text: 'a', number: 2, list: ['x', 'y'] },
        milliseconds: 1_000,
        events: ['first response'],
      },
    ])
    expect(receiver.resource.get('service.name')).toBe('mine')
    expect(receiver.exports).toMatchObject([{ path: '/v1/traces', spans: 1 }])
    expect(warnings).toEqual([])
  })

  test('exports as many together as OTEL_BSP_MAX_EXPORT_BATCH_SIZE says, and what is left at a stop', async () => {
    const { receiver, spans, warnings } = await started({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '10' })
    for (let i = 0; i < 25; i++) spans.add(spanOf('one'))
    await spans.close()
    await spans.terminate()
    expect(receiver.exports.map((each) => each.spans).sort()).toEqual([10, 10, 5])
    expect(warnings).toEqual([])
  })

  test('drops what is more than may wait, says so once, and takes more when it has caught up', async () => {
    const { receiver, spans, warnings } = await started()
    const most = encoded ? MAX_ENCODED : MAX_ROWS
    for (let i = 0; i < most + 1_000; i++) spans.add(spanOf('early'))
    while (receiver.spans.length < most) await new Promise((resolve) => setTimeout(resolve, 20))
    for (let i = 0; i < 10; i++) spans.add(spanOf('late'))
    await spans.close()
    await spans.terminate()
    const count = (wanted: string): number => receiver.spans.filter(({ name }) => name === wanted).length
    expect([count('early'), count('late')]).toEqual([most, 10])
    expect(warnings).toEqual([expect.stringContaining('some are dropped')])
  })

  test('tells what the SDK reports, and a stop does not wait for a thread that has ended', async () => {
    const { spans, warnings } = await started({ OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: 'pigeons' })
    await spans.close()
    expect(warnings).toEqual([expect.stringMatching(/^OpenTelemetry: Unsupported .*pigeons/)])
    await spans.terminate()
    spans.add(spanOf('later'))
    await spans.close()
  })
})

test('a stop does not wait for a thread that ends meanwhile', async () => {
  const { spans } = exporting(process.env, true)
  const closed = spans.close()
  await spans.terminate()
  await closed
})

test('a thread that dies is told, spans are dropped from then on, and a stop does not wait for it', async () => {
  // It cannot read these exporters.
  const env = { ...process.env, OTEL_BSP_MAX_QUEUE_SIZE: '4' }
  const { spans, warnings } = exporting(env, true, null as never)
  spans.add(spanOf('one'))
  await spans.close()
  expect(warnings).toEqual([expect.stringMatching(/^OpenTelemetry: spans are not exported any more: /)])
  // More than may wait: they do not.
  for (let i = 0; i < 10; i++) spans.add(spanOf('two'))
  await spans.close()
  expect(warnings).toHaveLength(1)
})

test('a protocol of OTLP that is not known is no matter where nothing goes over OTLP', async () => {
  const env = { ...process.env, OTEL_EXPORTER_OTLP_PROTOCOL: 'pigeons' }
  const { spans, warnings } = exporting(env, false, ['console'])
  await spans.close()
  await spans.terminate()
  expect(warnings).toEqual([])
})

test('spans that a stop does not wait for are told', async () => {
  const { spans, warnings, came, end } = await heldCollector({})
  spans.add(spanOf('one'))
  void spans.close()
  await came(1)
  await end()
  expect(warnings).toEqual(['OpenTelemetry: the stop did not wait longer, and the last spans are lost'])
})

test('an export that fails is told in one line, without a password of its address', async () => {
  const port = await closedPort()
  const env = {
    ...process.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://me:secret@127.0.0.1:${port}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: '300',
  }
  for (const encoded of [true, false]) {
    const { spans, warnings } = exporting(env, encoded)
    spans.add(spanOf('one'))
    await spans.close()
    await spans.terminate()
    expect(warnings).toEqual([
      expect.stringMatching(/^OpenTelemetry: (an export failed|the last spans are lost): [^{]+$/),
    ])
  }
  expect(told(['could not parse', "'http://me:secret@[bad'"])).toBe(
    "OpenTelemetry: could not parse: 'http://***@[bad'",
  )
  expect(told(['{"stack":"Error\\n at x","message":"","code":"ECONNREFUSED"}'])).toBe(
    'OpenTelemetry: an export failed: ECONNREFUSED',
  )
  expect(told(['{"a":1}'])).toBe('OpenTelemetry: {"a":1}')
  expect(told(['{"broken'])).toBe('OpenTelemetry: {"broken')
})

/** What a report of the SDK in this thread becomes. */
function told(pieces: readonly [string, ...string[]]): string | undefined {
  const warnings: string[] = []
  reportTo((warning) => warnings.push(warning))
  diag.warn(...pieces)
  diag.disable()
  return warnings[0]
}

/** A port on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

/** A collector that answers each request when it is told to, with 200 by default. */
async function heldCollector(variables: Environment) {
  const held: ((status?: number, body?: string) => void)[] = []
  const bodies: Buffer[] = []
  const collector = createServer((req, res) => {
    const chunks: Buffer[] = []
    req.on('data', (chunk: Buffer) => chunks.push(chunk))
    req.once('end', () => {
      bodies.push(Buffer.concat(chunks))
      held.push((status = 200, body = '') => res.writeHead(status).end(body))
    })
  }).listen(0, '127.0.0.1')
  await once(collector, 'listening')
  const env = {
    ...process.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(collector.address() as AddressInfo).port}`,
    ...variables,
  }
  const { spans, warnings } = exporting(env, true)
  /** Resolves when so many requests have come. */
  const came = async (count: number): Promise<void> => {
    while (held.length < count) await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const end = async (): Promise<void> => {
    await spans.terminate()
    collector.closeAllConnections()
    collector.close()
  }
  return { spans, warnings, held, bodies, came, end }
}

describe('encoded spans, with a slow collector', () => {
  test('wait until they are exported, and further ones are dropped', async () => {
    const variables = { OTEL_BSP_MAX_QUEUE_SIZE: '100', OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '50' }
    const { spans, warnings, held, came, end } = await heldCollector(variables)
    for (let i = 0; i < 50; i++) spans.add(spanOf('first'))
    await came(1)
    for (let i = 0; i < 50; i++) spans.add(spanOf('second'))
    expect(warnings).toEqual([])
    spans.add(spanOf('third'))
    expect(warnings).toEqual([expect.stringContaining('some are dropped')])
    held[0]!()
    await came(2)
    held[1]!()
    await spans.close()
    expect(held).toHaveLength(2)
    await end()
  })

  test('go after the delay, also after a batch that was full', async () => {
    const variables = { OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '2', OTEL_BSP_SCHEDULE_DELAY: '20' }
    const { spans, held, came, end } = await heldCollector(variables)
    for (let i = 0; i < 2; i++) spans.add(spanOf('a'))
    await came(1)
    held[0]!()
    spans.add(spanOf('a'))
    await came(2)
    held[1]!()
    await spans.close()
    await end()
  })

  test('go when they have a megabyte, however few they are', async () => {
    const { spans, held, bodies, came, end } = await heldCollector({})
    const long = { ...spanOf('a'), attributes: ['text', 'x'.repeat(99_000)] }
    for (let i = 0; i < 12; i++) spans.add(long)
    await came(1)
    held[0]!()
    const closed = spans.close()
    await came(2)
    held[1]!()
    await closed
    expect(bodies.map(({ length }) => Math.trunc(length / 99_000))).toEqual([11, 1])
    await end()
  })

  test('keep what they say while others wait, and others use their memory once they are exported', async () => {
    const { spans, held, bodies, came, end } = await heldCollector({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4' })
    const letters = 'abcdefghijkl'.split('')
    const add = (letter: string): void => {
      const long = { ...spanOf('one'), attributes: ['text', letter.toUpperCase().repeat(99_000)] }
      for (let i = 0; i < 4; i++) spans.add(long)
    }
    // Three wait for their export at any time.
    letters.slice(0, 3).forEach(add)
    for (const [at, letter] of letters.slice(3).entries()) {
      await came(at + 1)
      held[at]!()
      await came(at + 2)
      add(letter)
    }
    const closed = spans.close()
    for (let at = letters.length - 3; at < letters.length; at++) {
      await came(at + 1)
      held[at]!()
    }
    await closed
    // At a stop the last ones come in any order.
    const of = bodies.map((body) =>
      letters.filter((letter) => body.includes(letter.toUpperCase().repeat(9_000))),
    )
    expect(of.sort()).toEqual(letters.map((letter) => [letter]))
    expect(bodies.map(({ length }) => Math.trunc(length / 99_000))).toEqual(letters.map(() => 4))
    await end()
  })

  test('that it refuses are told, and those behind them go on', async () => {
    const { spans, warnings, held, came, end } = await heldCollector({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' })
    for (let i = 0; i < 2; i++) spans.add(spanOf('a'))
    await came(1)
    held[0]!(400)
    await came(2)
    held[1]!()
    await spans.close()
    expect(warnings).toEqual([expect.stringContaining('Bad Request')])
    await end()
  })

  test('are exported although its answer is not one of OTLP, and it is told what is wrong', async () => {
    const { spans, warnings, held, came, end } = await heldCollector({})
    spans.add(spanOf('a'))
    const closed = spans.close()
    await came(1)
    held[0]!(200, '{}')
    await closed
    expect(warnings).toEqual([expect.stringMatching(/^OpenTelemetry: .*could not deserialize response/)])
    await end()
  })

  test('go together, however often a few are due meanwhile', async () => {
    const { spans, held, bodies, came, end } = await heldCollector({ OTEL_BSP_SCHEDULE_DELAY: '1' })
    spans.add(spanOf('a'))
    await came(1)
    for (let i = 0; i < 60; i++) {
      spans.add(spanOf('a'))
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    held[0]!()
    await came(2)
    expect(bodies[1]!.length).toBeGreaterThan(60 * 30)
    held[1]!()
    await spans.close()
    expect(held).toHaveLength(2)
    await end()
  })

  test('go together once all full batches before them are exported', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    const { spans, held, bodies, came, end } = await heldCollector({
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '4',
      OTEL_BSP_SCHEDULE_DELAY: '54321',
    })
    for (let i = 0; i < 8; i++) spans.add(spanOf('full'))
    spans.add(spanOf('early'))
    timers.mock.calls.findLast(([, ms]) => ms === 54_321)![0]()
    await came(1)
    held[0]!()
    await came(2)
    spans.add(spanOf('late'))
    held[1]!()
    await came(3)
    expect(['early', 'late'].map((name) => bodies[2]!.includes(name))).toEqual([true, true])
    held[2]!()
    await spans.close()
    expect(held).toHaveLength(3)
    await end()
    timers.mockRestore()
  })

  test('that come after those that were overdue wait for the delay again', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout')
    /** Ends the delay of those that were added. */
    const endDelay = (): void => timers.mock.calls.findLast(([, ms]) => ms === 54_321)![0]()
    const { spans, warnings, held, bodies, came, end } = await heldCollector({
      OTEL_BSP_SCHEDULE_DELAY: '54321',
    })
    spans.add(spanOf('a'))
    endDelay()
    await came(1)
    spans.add(spanOf('b'))
    endDelay()
    held[0]!()
    await came(2)
    spans.add(spanOf('c'))
    // Told when the export has ended.
    held[1]!(400)
    while (warnings.length === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    spans.add(spanOf('c'))
    endDelay()
    await came(3)
    expect(bodies[2]!.length).toBeGreaterThan(bodies[1]!.length + 30)
    held[2]!()
    await spans.close()
    expect(held).toHaveLength(3)
    await end()
    timers.mockRestore()
  })

  test('are exported one batch after the other, and at a stop twenty side by side', async () => {
    const { spans, warnings, held, came, end } = await heldCollector({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' })
    for (let i = 0; i < 3; i++) spans.add(spanOf('a'))
    for (let i = 0; i < 2; i++) {
      await came(i + 1)
      expect(held).toHaveLength(i + 1)
      held[i]!()
    }
    for (let i = 0; i < 40; i++) spans.add(spanOf('a'))
    await came(3)
    expect(held).toHaveLength(3)
    let isClosed = false
    const closed = spans.close().then(() => (isClosed = true))
    await came(22)
    expect(held).toHaveLength(22)
    for (let i = 2; i < 43; i++) {
      await came(i + 1)
      expect(isClosed).toBe(false)
      held[i]!()
    }
    await closed
    expect(warnings).toEqual([])
    await end()
  })

  test('do not keep a stop when their thread ends', async () => {
    const { spans, came, end } = await heldCollector({ OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1' })
    spans.add(spanOf('a'))
    await came(1)
    const closed = spans.close()
    await end()
    await closed
  })

  test('are given up after OTEL_BSP_EXPORT_TIMEOUT, and those behind them go on', async () => {
    const variables = {
      OTEL_BSP_MAX_EXPORT_BATCH_SIZE: '1',
      OTEL_BSP_EXPORT_TIMEOUT: '50',
      // The sender's own.
      OTEL_EXPORTER_OTLP_TIMEOUT: '600000',
    }
    const { spans, warnings, held, came, end } = await heldCollector(variables)
    for (let i = 0; i < 2; i++) spans.add(spanOf('a'))
    await came(2)
    held[1]!()
    await spans.close()
    expect(warnings).toEqual([expect.stringContaining('an export failed: not done after 50 ms')])
    await end()
  })
})
