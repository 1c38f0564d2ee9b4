import type { MetricKind } from '../../../protocol/messages.ts'
import type { ModelMetrics, ModelState } from './model-metrics.ts'
import type { PageFamily } from './page.ts'
import type { Refusals } from './refusals.ts'
import { labelText, type Sample } from './sample.ts'
import { distributionSamples } from './series.ts'
import type { Distribution, KindTally, Outcome, RequestKind, Tally } from './tally.ts'

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
  const counter = (name: string, help: string, read: (tally: Tally) => number | undefined): PageFamily =>
    numbers(name, 'counter', help, (add) => {
      for (const { labels, tally } of models) add(labels, read(tally))
    })
  const gauge = (name: string, help: string, read: (state: ModelState) => number | undefined): PageFamily =>
    numbers(name, 'gauge', help, (add) => {
      for (const { labels, state } of models) add(labels, state && read(state()))
    })
  const times = (name: string, help: string, read: (tally: Tally) => Distribution): PageFamily =>
    histogram(name, help, (add) => {
      for (const { labels, tally } of models) add(labels, read(tally))
    })
  const timesByKind = (name: string, help: string, read: (kind: KindTally) => Distribution): PageFamily =>
    histogram(name, help, (add) => {
      for (const { labels, tally } of models)
        for (const kind of KINDS) add(labels + KIND[kind], read(tally.kinds[kind]))
    })
  return [
    numbers('requests_ended_total', 'counter', ENDED, (add) => {
      for (const { labels, tally } of models)
        for (const kind of KINDS)
          for (const outcome of OUTCOMES)
            add(labels + KIND[kind] + OUTCOME[outcome], tally.kinds[kind].endings[outcome])
    }),
    counter('worker_deaths_total', 'Workers that ended unexpectedly', (tally) => tally.workerDeaths),
    counter('traffic_requests_total', 'Requests that weights sent to a version', (tally) => tally.routed),
    counter('discarded_responses_total', DISCARDED, (tally) => tally.discardedResponses),
    numbers('refused_requests_total', 'counter', REFUSED, (add) => {
      for (const [labels, count] of refusals.requests()) add(labels, count)
    }),
    numbers(
      'refused_connections_total',
      'counter',
      'Connections refused because there were too many',
      (add) => {
        for (const [labels, count] of refusals.connections()) add(labels, count)
      },
    ),
    numbers('log_lines_lost_total', 'counter', LOST, (add) => {
      for (const [log, lines] of lostLines()) add(labelText(['log'], [log]), lines)
    }),
    gauge('queue_depth', 'Requests that wait for a worker', (state) => state.queued),
    gauge('open_requests', 'Requests that have not ended', (state) => state.open),
    gauge('open_streams', 'Streams that have begun and not ended', (state) => state.streams),
    gauge('oldest_wait_seconds', 'Time for which the oldest queued request has waited', ({ queuedSince }) =>
      secondsSince(queuedSince),
    ),
    gauge('oldest_running_seconds', 'Time for which the oldest request at a worker has run', (state) =>
      secondsSince(state.runningSince),
    ),
    gauge('slots', 'Batches that the ready workers can run at once', (state) => state.slots),
    gauge('busy_slots', 'Batches that the ready workers run', (state) => state.busy),
    gauge('workers_wanted', 'Workers that the model should have now', (state) => state.workersWanted),
    gauge('failing', '1 while no worker of the model can serve: its requests get 503', ({ failing }) =>
      failing === undefined ? undefined : Number(failing),
    ),
    gauge('traffic_share', SHARE, (state) => state.trafficShare),
    numbers('workers', 'gauge', 'Workers by state', (add) => {
      for (const { labels, state: look } of models)
        for (const state of look?.().workerStates ?? []) add(labels + labelText(['state'], [state]), 1)
    }),
    timesByKind('first_response', FIRST_RESPONSE, (kind) => kind.firstResponse),
    timesByKind('queue', 'Time that a request waited for a worker', (kind) => kind.queue),
    timesByKind('request', 'Time from the arrival of a request to its end', (kind) => kind.whole),
    times('gap', 'Time between two responses of a stream', (tally) => tally.gaps),
    times('worker_start', WORKER_START, (tally) => tally.workerStart),
    times('wake', WAKE, (tally) => tally.wake),
  ]
}

const ENDED =
  'Requests by kind (stream, unary) and outcome (finished, failed, cancelled, timed_out, client_stalled)'
const DISCARDED = 'Responses of workers that arrived after their request had ended'
const REFUSED = 'Requests refused for their token or a limit, by reason (no_token, not_accepted, rate_limit)'
const LOST = 'Lines that a log lost: full disk, slow disk or reader'
const SHARE = 'Share of the requests without a version that weights give to this one, from 0 to 1'
const FIRST_RESPONSE = 'Time from the arrival of a request to its first response'
const WORKER_START = 'Time from the start of a worker until its handler has loaded'
const WAKE = 'Time from a request to a model without workers until a worker has loaded the handler'

function secondsSince(time: number | undefined): number {
  return time === undefined ? 0 : (performance.now() - time) / 1000
}

function numbers(
  name: string,
  kind: MetricKind,
  help: string,
  read: (add: Add<number | undefined>) => void,
): PageFamily {
  const family = { name: `torchserve_ts_${name}`, kind, help }
  const samples = function* (): Iterable<Sample> {
    const values = new Map<string, number>()
    read((labels, value) => {
      if (value !== undefined) values.set(labels, (values.get(labels) ?? 0) + value)
    })
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
