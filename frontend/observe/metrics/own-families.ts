import type { MetricKind } from '../../../protocol/messages.ts'
import { Distribution } from './distribution.ts'
import type { ModelMetrics, ModelState } from './model-metrics.ts'
import { distributionSamples, labelText, type PageFamily, type Sample } from './page.ts'
import type { KindTally, RequestKind } from './tally.ts'

type Labels = Readonly<Record<string, string>>
/** Adds a value to the sample with the same labels. */
type Add<Value> = (labels: Labels, value: Value) => void
type Models = Iterable<ModelMetrics>

/** This server's own metrics. Names start with `torchserve_ts_`; values are read for each page. */
export function ownFamilies(models: Models): PageFamily[] {
  return [
    ...counters(models),
    ...gauges(models),
    byKind(
      models,
      'first_response',
      'Time from the arrival of a request to its first response',
      (kind) => kind.firstResponse,
    ),
    byKind(models, 'queue', 'Time that a request waited for a worker', (kind) => kind.queue),
    byKind(models, 'request', 'Time from the arrival of a request to its end', (kind) => kind.whole),
    histogram('gap', 'Time between two responses of a stream', (add) => {
      for (const { labels, tally } of models) add(labels, tally.gaps)
    }),
  ]
}

function counters(models: Models): PageFamily[] {
  const ended = 'Requests by kind (stream, unary) and outcome (finished, failed, cancelled, timed out)'
  return [
    numbers('requests_ended_total', 'counter', ended, (add) => {
      for (const { labels, tally } of models) {
        for (const [kind, { endings }] of Object.entries(tally.kinds)) {
          for (const [outcome, count] of Object.entries(endings)) add({ ...labels, kind, outcome }, count)
        }
      }
    }),
    numbers('worker_deaths_total', 'counter', 'Workers that ended unexpectedly', (add) => {
      for (const { labels, tally } of models) add(labels, tally.workerDeaths)
    }),
    numbers(
      'discarded_responses_total',
      'counter',
      'Responses of workers that arrived after their request had ended',
      (add) => {
        for (const { labels, tally } of models) add(labels, tally.discardedResponses)
      },
    ),
  ]
}

function gauges(models: Models): PageFamily[] {
  const gauge = (name: string, help: string, read: (state: ModelState) => number): PageFamily =>
    numbers(name, 'gauge', help, (add) => {
      for (const { labels, state } of models) if (state) add(labels, read(state()))
    })
  return [
    gauge('queue_depth', 'Requests that wait for a worker', (state) => state.queued),
    gauge('open_requests', 'Requests that have not ended', (state) => state.open),
    gauge('open_streams', 'Streams that have begun and not ended', (state) => state.streams),
    numbers('workers', 'gauge', 'Workers by state', (add) => {
      for (const { labels, state: look } of models) {
        for (const state of look?.().workerStates ?? []) add({ ...labels, state }, 1)
      }
    }),
  ]
}

/** A histogram with the label kind. */
function byKind(
  models: Models,
  name: string,
  help: string,
  read: (kind: KindTally) => Distribution,
): PageFamily {
  return histogram(name, help, (add) => {
    for (const { labels, tally } of models) {
      for (const kind of ['stream', 'unary'] satisfies RequestKind[]) {
        add({ ...labels, kind }, read(tally.kinds[kind]))
      }
    }
  })
}

function numbers(name: string, kind: MetricKind, help: string, read: (add: Add<number>) => void): PageFamily {
  const family = { name: `torchserve_ts_${name}`, kind, help }
  const samples = (): Sample[] => {
    const values = new Map<string, number>()
    read((labels, value) => {
      const text = textOf(labels)
      values.set(text, (values.get(text) ?? 0) + value)
    })
    return [...values].map(([labels, value]) => ({ name: family.name, labels, value }))
  }
  return { ...family, samples }
}

function histogram(name: string, help: string, read: (add: Add<Distribution>) => void): PageFamily {
  const family = { name: `torchserve_ts_${name}_seconds`, kind: 'histogram' as const, help }
  const samples = (): Sample[] => {
    const sums = new Map<string, Distribution>()
    read((labels, distribution) => {
      const text = textOf(labels)
      const sum = sums.get(text) ?? new Distribution()
      sum.add(distribution)
      sums.set(text, sum)
    })
    return [...sums].flatMap(([labels, sum]) => distributionSamples(family.name, labels, sum))
  }
  return { ...family, samples }
}

function textOf(labels: Labels): string {
  return labelText(Object.keys(labels), Object.values(labels))
}
