import { hostname } from 'node:os'
import { Counter, Gauge, Registry } from 'prom-client'
import { DistributionMetric } from './distribution-metric.ts'
import { ModelMetrics, type ModelState } from './model-metrics.ts'
import type { VersionTally } from './tally.ts'

const MODEL = ['model_name', 'model_version'] as const

type StatusClass = 'Requests2XX' | 'Requests4XX' | 'Requests5XX'

/**
 * The server's metrics: TorchServe's names (spec 8.1) as far as requests go, and ours, whose names start with
 * `torchserve_ts_`. One page in the Prometheus text format, put together when it is asked for.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #models = new Set<ModelMetrics>()
  readonly #responses: Record<StatusClass, number> = { Requests2XX: 0, Requests4XX: 0, Requests5XX: 0 }

  constructor() {
    this.#addResponseCounters()
    this.#addTorchServeCounters()
    this.#addOwnCounters()
    this.#addGauges()
  }

  /** Counts one REST response; anything that is neither 2xx nor 4xx counts as 5XX, as in TorchServe. */
  response(status: number): void {
    if (status >= 200 && status < 300) this.#responses.Requests2XX += 1
    else if (status >= 400 && status < 500) this.#responses.Requests4XX += 1
    else this.#responses.Requests5XX += 1
  }

  /** The metrics of one model version. */
  model(name: string, version: string): ModelMetrics {
    const metrics = new ModelMetrics(name, version, (gone) => this.#models.delete(gone))
    this.#models.add(metrics)
    return metrics
  }

  /** The page; with `names` only those metrics. */
  async page(names: readonly string[] = []): Promise<{ contentType: string; text: string }> {
    const contentType = this.#registry.contentType
    if (names.length === 0) return { contentType, text: await this.#registry.metrics() }
    const known = names.filter((name) => this.#registry.getSingleMetric(name) !== undefined)
    const parts = await Promise.all(known.map((name) => this.#registry.getSingleMetricAsString(name)))
    return { contentType, text: parts.length === 0 ? '' : `${parts.join('\n\n')}\n` }
  }

  #addResponseCounters(): void {
    const labels = { Level: 'Host', Hostname: hostname() }
    for (const name of Object.keys(this.#responses) as StatusClass[]) {
      const count = () => this.#responses[name]
      this.#counter(name, torchserveHelp('Count'), ['Level', 'Hostname'], (counter) => {
        counter.inc(labels, count())
      })
    }
  }

  #addTorchServeCounters(): void {
    const host = hostname()
    const add = (name: string, unit: string, read: (tally: VersionTally) => number) => {
      this.#counter(name, torchserveHelp(unit), [...MODEL, 'hostname'], (counter) => {
        for (const { labels, tally } of this.#models) {
          for (const [asked, version] of tally.versions) {
            counter.inc(
              { model_name: labels.model_name, model_version: asked, hostname: host },
              read(version),
            )
          }
        }
      })
    }
    add('ts_inference_requests_total', 'Count', (tally) => tally.requests)
    add('ts_inference_latency_microseconds', 'Microseconds', (tally) => tally.latencyMicroseconds)
    add('ts_queue_latency_microseconds', 'Microseconds', (tally) => tally.queueMicroseconds)
  }

  #addOwnCounters(): void {
    const ended = 'Requests by kind (stream, unary) and outcome (finished, failed, cancelled, timed_out)'
    this.#counter('torchserve_ts_requests_ended_total', ended, [...MODEL, 'kind', 'outcome'], (counter) => {
      for (const { labels, tally } of this.#models) {
        for (const [kind, outcomes] of Object.entries(tally.endings)) {
          for (const [outcome, count] of Object.entries(outcomes))
            counter.inc({ ...labels, kind, outcome }, count)
        }
      }
    })
    this.#counter(
      'torchserve_ts_worker_deaths_total',
      'Workers that ended unasked',
      [...MODEL],
      (counter) => {
        for (const { labels, tally } of this.#models) counter.inc(labels, tally.workerDeaths)
      },
    )
    new DistributionMetric({
      name: 'torchserve_ts_first_response_seconds',
      help: 'Time from the arrival of a request to its first response',
      registry: this.#registry,
      read: () =>
        [...this.#models].map(({ labels, tally }) => ({ labels, distribution: tally.firstResponse })),
    })
  }

  #addGauges(): void {
    const add = (name: string, help: string, read: (state: ModelState) => number) => {
      this.#gauge(name, help, [...MODEL], (gauge) => {
        for (const { labels, state } of this.#models) if (state) gauge.inc(labels, read(state()))
      })
    }
    add('torchserve_ts_queue_depth', 'Requests that wait for a worker', (state) => state.queued)
    add('torchserve_ts_open_requests', 'Requests that have not ended', (state) => state.open)
    add('torchserve_ts_open_streams', 'Streams that have begun and not ended', (state) => state.streams)
    this.#gauge('torchserve_ts_workers', 'Workers by state', [...MODEL, 'state'], (gauge) => {
      for (const { labels, state: look } of this.#models) {
        for (const state of look?.().workerStates ?? []) gauge.inc({ ...labels, state })
      }
    })
  }

  #counter(name: string, help: string, labelNames: string[], fill: (counter: Counter) => void): void {
    const counter: Counter = new Counter({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        counter.reset()
        fill(counter)
      },
    })
  }

  #gauge(name: string, help: string, labelNames: string[], fill: (gauge: Gauge) => void): void {
    const gauge: Gauge = new Gauge({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        gauge.reset()
        fill(gauge)
      },
    })
  }
}

function torchserveHelp(unit: string): string {
  return `Torchserve prometheus counter metric with unit: ${unit}`
}
