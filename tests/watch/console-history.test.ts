import { expect, test } from '@jest/globals'
import type { Histogram, ModelOverview } from '../../common/server-events.ts'
import { History, quantilesOf, WINDOW } from '../../console/history.ts'
import { model, overview } from '../console/watched.ts'

const NONE = { finished: 0, failed: 0, cancelled: 0, timed_out: 0, client_stalled: 0 }
const NO_TIMES = model().times

/** A history of these overviews: seconds and models of each. */
function historyOf(...overviews: [second: number, models: ModelOverview[]][]): History {
  const history = new History()
  for (const [second, models] of overviews)
    history.add(overview(models, { at: new Date(Date.UTC(2026, 0, 2, 3, 4, second)).toISOString() }))
  return history
}

/** A model that has finished requests and sent items. */
function done(finished: number, items: number): ModelOverview {
  return model({ counts: { unary: { ...NONE, finished }, stream: NONE, items, bytes: 0 } })
}

function timed(...counts: number[]): ModelOverview {
  const firstResponse: Histogram = { bounds: [0.001, 0.01, 0.1], counts, sum: 1 }
  return model({ times: { ...NO_TIMES, firstResponse } })
}

test('a request has ended however it ended', () => {
  const unary = { finished: 1, failed: 2, cancelled: 4, timed_out: 8, client_stalled: 256 }
  const stream = { finished: 16, failed: 32, cancelled: 64, timed_out: 128, client_stalled: 512 }
  const ended = model({ counts: { unary, stream, items: 0, bytes: 0 } })
  const { points } = historyOf([0, [model()]], [1, [ended]])
  expect(points.map(({ requestsPerSecond }) => requestsPerSecond)).toEqual([1023])
})

test('rates are those of one second, however long the server was silent', () => {
  const { points } = historyOf([0, [done(0, 0)]], [4, [done(8, 100)]])
  expect(points).toMatchObject([{ requestsPerSecond: 2, itemsPerSecond: 25 }])
})

test('the times of all models are added up', () => {
  const named = (models: ModelOverview[]): ModelOverview[] =>
    models.map((each, index) => ({ ...each, modelName: `m${index}` }))
  const before = [timed(0, 0, 0, 0), timed(0, 0, 0, 0), timed(0, 0, 0, 0)]
  const after = [timed(5, 0, 0, 0), timed(0, 5, 0, 0), timed(0, 0, 10, 0)]
  const { points } = historyOf([0, named(before)], [1, named(after)])
  // Half of the 20 values are at most 10 ms.
  expect(points.map(({ firstResponse }) => Math.round(firstResponse.p50!))).toEqual([10])
})

test('values above all bounds count as the last one', () => {
  expect(quantilesOf({ bounds: [0.001, 0.01], counts: [0, 0, 5], sum: 50 })).toEqual({ p50: 10, p99: 10 })
})

test('without a value there is no quantile', () => {
  expect(quantilesOf({ bounds: [0.001], counts: [0, 0], sum: 0 })).toEqual({ p50: null, p99: null })
})

test('the charts keep the points of their last seconds', () => {
  const seconds = Array.from({ length: 200 }, (_, second) => second)
  const { points } = historyOf(...seconds.map((second): [number, ModelOverview[]] => [second, [model()]]))
  const from = points.at(-1)!.at - points[0]!.at
  expect([WINDOW, points.length, from]).toEqual([180, 180, 179])
})

test('requests that become fewer are counts that began anew, even when items grow', () => {
  const { points } = historyOf([0, [done(9, 10)]], [1, [done(2, 30)]], [2, [done(5, 31)]])
  expect(points).toMatchObject([{ requestsPerSecond: 3, itemsPerSecond: 1 }])
})

test('items that become fewer are counts that began anew, even when requests grow', () => {
  const { points } = historyOf([0, [done(1, 30)]], [1, [done(2, 10)]], [2, [done(5, 11)]])
  expect(points).toMatchObject([{ requestsPerSecond: 3, itemsPerSecond: 1 }])
})

test('a clock that stands still or goes back gives no point', () => {
  const { points } = historyOf([5, [done(1, 1)]], [5, [done(2, 2)]], [3, [done(3, 3)]])
  expect(points).toEqual([])
})

test('a model’s own numbers are those of the last minute, and begin anew with its counts', () => {
  const history = historyOf([0, [done(100, 0)]], [30, [done(160, 0)]], [80, [done(180, 0)]])
  expect(history.recent(model())).toMatchObject({ requests: 20, requestsPerSecond: 0.4, failures: 0 })
  expect(history.recent(model({ modelName: 'another' }))).toBeUndefined()
  const restarted = historyOf([0, [done(100, 0)]], [1, [done(2, 0)]], [3, [done(6, 0)]])
  expect(restarted.recent(model())).toMatchObject({ requests: 4, requestsPerSecond: 2 })
})
