import { afterEach, expect, test } from '@jest/globals'
import type { MetricMessage, MetricSpec, WantedMetrics } from '../../protocol/messages.ts'
import { MetricSender } from '../../backend-worker/metric-sender.ts'
import type { Outlet } from '../../backend-worker/outlet.ts'
import { runHandler } from '../../backend-worker/testing.ts'
import type { Context } from '../../backend-worker/index.ts'

const senders: MetricSender[] = []

afterEach(() => {
  for (const sender of senders.splice(0)) sender.flush()
})

/** A sender whose messages are kept. */
function sender(wanted?: Partial<WantedMetrics>): { sender: MetricSender; sent: MetricMessage[] } {
  const sent: MetricMessage[] = []
  const outlet: Outlet = {
    send: (message) => sent.push(message as MetricMessage),
    sendItem: () => undefined,
    flushEarly: () => undefined,
    flush: () => undefined,
    unsentBytes: 0,
  }
  const made = new MetricSender(outlet, wanted && { declared: [], others: true, ...wanted })
  senders.push(made)
  return { sender: made, sent }
}

const spec = (name: string, kind: MetricSpec['kind']): MetricSpec => ({
  name,
  kind,
  unit: 'u',
  dimensions: [],
})

/** What a handler reports when it runs `report`. */
async function reported(report: (context: Context) => void): Promise<unknown[][]> {
  const { metrics } = await runHandler(
    (_requests: unknown[], context: Context) => {
      report(context)
      return ['', '']
    },
    [1, 2],
  )
  return metrics.map(({ name, kind, unit, value, dimensions, requestIds }) => {
    return [name, kind, unit, value, dimensions, requestIds]
  })
}

const MODEL = { ModelName: 'test', Level: 'Model' }
const BOTH = 'request-0,request-1'

test('every way to report, with units, default dimensions and request ids', async () => {
  const all = await reported(({ metrics }) => {
    metrics.addCounter('a', 1, { Own: 'x' })
    metrics.addCounter('b', 2, undefined, 1)
    metrics.addTime('c', 3, 's', undefined, 'histogram')
    metrics.addSize('d', 4)
    metrics.addPercent('e', 5, { Level: 'Mine' })
    metrics.addError('f', 6)
    metrics.addMetric('g', 7, 'tokens')
  })
  expect(all).toEqual([
    ['a', 'counter', 'Count', 1, { Own: 'x', ...MODEL }, BOTH],
    ['b', 'counter', 'Count', 2, MODEL, 'request-1'],
    ['c', 'histogram', 'Seconds', 3, MODEL, BOTH],
    ['d', 'gauge', 'Megabytes', 4, MODEL, BOTH],
    ['e', 'gauge', 'Percent', 5, { ModelName: 'test', Level: 'Mine' }, BOTH],
    ['f', 'counter', 'unit', 6, { Level: 'Error' }, ''],
    ['g', 'counter', 'tokens', 7, MODEL, BOTH],
  ])
  expect(Object.keys(all[0]![4] as object)).toEqual(['Own', 'ModelName', 'Level'])
})

test('a metric of the cache has its own dimensions and no others', async () => {
  const all = await reported(({ metrics }) => {
    const added = metrics.addMetricToCache('a', 'ms', ['Kind'], 'gauge')
    expect(metrics.getMetric('a', 'gauge')).toBe(added)
    expect([metrics.getMetric('a'), metrics.getMetric('b')]).toEqual([undefined, undefined])
    added.addOrUpdate(1, ['x'], 'id')
    added.addOrUpdate(2)
    added.update(3, undefined, { Other: 'y' })
    metrics.addMetricToCache('n', 'count').addOrUpdate(-1)
  })
  expect(all).toEqual([
    ['a', 'gauge', 'Milliseconds', 1, { Kind: 'x' }, 'id'],
    ['a', 'gauge', 'Milliseconds', 3, { Other: 'y' }, ''],
  ])
})

test('what nobody wants is not sent', async () => {
  const { sender: made } = sender({ declared: [spec('a', 'gauge')], others: false })
  expect([made.wants('a'), made.wants('b')]).toEqual([true, false])
  expect([sender().sender.wants('b'), sender({}).sender.wants('b')]).toEqual([true, true])
})

test('values that come close together leave in one message; of counters and gauges nothing counts twice or is lost', async () => {
  const { sender: made, sent } = sender({})
  const counter = made.series('c', 'counter', 'u', {})
  const gauge = made.series('g', 'gauge', 'u', {})
  for (let n = 1; n <= 10; n += 1) {
    counter.add(n, `id-${n}`)
    gauge.add(n, '')
  }
  expect(sent).toEqual([])
  made.answering()
  expect(sent.map(({ name, values }) => [name, values])).toEqual([
    ['c', [1, 2, 3, 49]],
    ['g', [1, 2, 3, 10]],
  ])
  expect(sent[0]!.requestIds).toEqual(['id-1', 'id-2', 'id-3', 'id-10'])

  // A quiet worker sends the metrics with each response; after many responses at once the next metrics wait.
  let answers = 0
  while (sent.length === 2 + answers) {
    answers += 1
    gauge.add(answers, '')
    made.answering()
  }
  expect(answers).toBeGreaterThan(10)
  const before = sent.length
  while (sent.length === before) await new Promise((resolve) => setTimeout(resolve, 1))
  expect(sent.at(-1)).toMatchObject({ name: 'g', values: [answers] })
})

test('of a metric that is declared as a histogram every value leaves, whatever the handler calls it', () => {
  const { sender: made, sent } = sender({ declared: [spec('h', 'histogram')] })
  const series = made.series('h', 'gauge', 'u', {})
  for (let n = 0; n < 1000; n += 1) series.add(n, '')
  made.flush()
  expect(sent.flatMap(({ values }) => values)).toEqual(Array.from({ length: 1000 }, (_, n) => n))
  expect(Math.max(...sent.map(({ values }) => values.length))).toBeLessThanOrEqual(256)
})

test('dimensions without end do not fill the memory of a worker', () => {
  const { sender: made, sent } = sender({})
  for (let n = 0; n < 3000; n += 1) made.series('c', 'counter', 'u', { User: String(n) }).add(1, '')
  made.flush()
  expect(sent).toHaveLength(3000)
  expect(made.series('c', 'counter', 'u', { User: '1' })).toBe(
    made.series('c', 'counter', 'u', { User: '1' }),
  )
  expect(made.series('c', 'counter', 'u', { User: '2999' })).not.toBe(
    made.series('c', 'counter', 'u', { User: '2999' }),
  )
})
