import type { MetricKind } from '../../../protocol/messages.ts'
import type { Distribution } from './distribution.ts'
import type { ModelMetrics, ModelState } from './model-metrics.ts'
import { distributionSamples, labelText, type PageFamily, type Sample } from './page.ts'
import type { Refusals } from './refusals.ts'
import type { KindTally, Outcome, RequestKind } from './tally.ts'

/** Adds a value to the sample with the same labels: see `labelText`. */
type Add<Value> = (labels: string, value: Value) => void
type Models = Iterable<ModelMetrics>
type LostLines = () => Iterable<readonly [log: string, lines: number]>

const KINDS = ['stream', 'unary'] as const satisfies readonly RequestKind[]
const OUTCOMES = [
  'finished',
  'failed',
  'cancelled',
  'timed_out',
  'client_stalled',
] as const satisfies readonly Outcome[]
const KIND = textsOf('kind', KINDS)
const OUTCOME = textsOf('outcome', OUTCOMES)

/** This server's own metrics. Names start with `torchserve_ts_`; values are read for each page. */
export function ownFamilies(
  models: Models,
  refusals: Refusals,
  lostLines: LostLines = () => [],
): PageFamily[] {
  return [
    ...counters(models),
    ...refusalCounters(refusals),
    numbers(
      'log_lines_lost_total',
      'counter',
      'Lines that a log lost: full disk, slow disk or reader',
      (add) => {
        for (const [log, lines] of lostLines()) add(labelText(['log'], [log]), lines)
      },
    ),
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
    histogram('worker_start', 'Time from the start of a worker until its handler has loaded', (add) => {
      for (const { labels, tally } of models) add(labels, tally.workerStart)
    }),
    histogram(
      'wake',
      'Time from a request to a model without workers until a worker has loaded the handler',
      (add) => {
        for (const { labels, tally } of models) add(labels, tally.wake)
      },
    ),
  ]
}

function counters(models: Models): PageFamily[] {
  const ended =
    'Requests by kind (stream, unary) and outcome (finished, failed, cancelled, timed_out, client_stalled)'
  return [
    numbers('requests_ended_total', 'counter', ended, (add) => {
      for (const { labels, tally } of models) {
        for (const kind of KINDS) {
          const { endings } = tally.kinds[kind]
          for (const outcome of OUTCOMES) add(labels + KIND[kind] + OUTCOME[outcome], endings[outcome])
        }
      }
    }),
    numbers('worker_deaths_total', 'counter', 'Workers that ended unexpectedly', (add) => {
      for (const { labels, tally } of models) add(labels, tally.workerDeaths)
    }),
    numbers('traffic_requests_total', 'counter', 'Requests that weights sent to a version', (add) => {
      for (const { labels, tally } of models) if (tally.routed !== undefined) add(labels, tally.routed)
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

function refusalCounters(refusals: Refusals): PageFamily[] {
  return [
    numbers(
      'refused_requests_total',
      'counter',
      'Requests refused for their token or a limit, by reason (no_token, not_accepted, rate_limit)',
      (add) => {
        for (const [labels, count] of refusals.requests()) add(labels, count)
      },
    ),
    numbers(
      'refused_connections_total',
      'counter',
      'Connections refused because there were too many',
      (add) => {
        for (const [labels, count] of refusals.connections()) add(labels, count)
      },
    ),
  ]
}

function gauges(models: Models): PageFamily[] {
  const gauge = (name: string, help: string, read: (state: ModelState) => number | undefined): PageFamily =>
    numbers(name, 'gauge', help, (add) => {
      for (const { labels, state } of models) {
        const value = state && read(state())
        if (value !== undefined) add(labels, value)
      }
    })
  return [
    gauge('queue_depth', 'Requests that wait for a worker', (state) => state.queued),
    gauge('open_requests', 'Requests that have not ended', (state) => state.open),
    gauge('open_streams', 'Streams that have begun and not ended', (state) => state.streams),
    gauge('oldest_wait_seconds', 'Time for which the oldest queued request has waited', ({ queuedSince }) =>
      queuedSince === undefined ? 0 : (performance.now() - queuedSince) / 1000,
    ),
    gauge(
      'oldest_running_seconds',
      'Time for which the oldest request at a worker has run',
      ({ runningSince }) => (runningSince === undefined ? 0 : (performance.now() - runningSince) / 1000),
    ),
    gauge('slots', 'Batches that the ready workers can run at once', (state) => state.slots),
    gauge('busy_slots', 'Batches that the ready workers run', (state) => state.busy),
    gauge('workers_wanted', 'Workers that the model should have now', (state) => state.workersWanted),
    gauge('failing', '1 while no worker of the model can serve: its requests get 503', ({ failing }) =>
      failing === undefined ? undefined : Number(failing),
    ),
    gauge(
      'traffic_share',
      'Share of the requests without a version that weights give to this one, from 0 to 1',
      (state) => state.trafficShare,
    ),
    numbers('workers', 'gauge', 'Workers by state', (add) => {
      for (const { labels, state: look } of models) {
        for (const state of look?.().workerStates ?? []) add(labels + labelText(['state'], [state]), 1)
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
      for (const kind of KINDS) add(labels + KIND[kind], read(tally.kinds[kind]))
    }
  })
}

function numbers(name: string, kind: MetricKind, help: string, read: (add: Add<number>) => void): PageFamily {
  const family = { name: `torchserve_ts_${name}`, kind, help }
  const samples = function* (): Iterable<Sample> {
    const values = new Map<string, number>()
    read((labels, value) => values.set(labels, (values.get(labels) ?? 0) + value))
    for (const [labels, value] of values) yield { name: family.name, labels, value }
  }
  return { ...family, samples }
}

/** Label sets without a value are left out: most models never stream, and a histogram has 19 lines. */
function histogram(name: string, help: string, read: (add: Add<Distribution>) => void): PageFamily {
  const family = { name: `torchserve_ts_${name}_seconds`, kind: 'histogram' as const, help }
  const samples = function* (): Iterable<Sample> {
    const found = new Map<string, Distribution>()
    read((labels, distribution) => {
      if (distribution.isEmpty) return
      const other = found.get(labels)
      found.set(labels, other === undefined ? distribution : other.plus(distribution))
    })
    for (const [labels, all] of found) yield* distributionSamples(family.name, labels, all)
  }
  return { ...family, samples }
}

/** The label with each of its values. */
function textsOf<Value extends string>(label: string, values: readonly Value[]): Record<Value, string> {
  const texts = values.map((value) => [value, labelText([label], [value])] as const)
  return Object.fromEntries(texts) as Record<Value, string>
}
