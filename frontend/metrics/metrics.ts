import { hostname } from 'node:os'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** What the metrics want to know of a job at its end. Times are performance.now() milliseconds. */
export interface EndedJob {
  readonly request: { readonly modelVersion?: string }
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly firstResponseAt: number | undefined
  readonly outcome: string | undefined
  readonly streaming: boolean
}

/** The state of one model version, looked at when the page is asked for. */
export interface ModelState {
  queued: number
  open: number
  streams: number
  workerStates: string[]
}

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120]
const MODEL = ['model_name', 'model_version'] as const

/**
 * The server's metrics: TorchServe's names (spec 8.1) as far as requests go, and ours, whose names start with
 * `torchserve_ts_`. One page in the Prometheus text format.
 */
export class Metrics {
  readonly #registry = new Registry()
  readonly #models = new Set<ModelMetrics>()
  readonly #host = hostname()
  readonly #responses: Record<'2XX' | '4XX' | '5XX', Counter>
  readonly collectors: Collectors

  constructor() {
    const registers = [this.#registry]
    const statusClass = (name: string) => {
      const counter = new Counter({
        name,
        help: counterHelp('Count'),
        labelNames: ['Level', 'Hostname'],
        registers,
      })
      counter.inc({ Level: 'Host', Hostname: this.#host }, 0)
      return counter
    }
    this.#responses = {
      '2XX': statusClass('Requests2XX'),
      '4XX': statusClass('Requests4XX'),
      '5XX': statusClass('Requests5XX'),
    }
    this.collectors = createCollectors(this.#registry)
    this.#collectGauges()
  }

  /** Counts one REST response; anything that is neither 2xx nor 4xx counts as 5XX, as in TorchServe. */
  response(status: number): void {
    const group = status >= 200 && status < 300 ? '2XX' : status >= 400 && status < 500 ? '4XX' : '5XX'
    this.#responses[group].inc({ Level: 'Host', Hostname: this.#host })
  }

  /** The metrics of one model version. */
  model(name: string, version: string): ModelMetrics {
    const metrics = new ModelMetrics(name, version, this.#host, this.collectors, () => {
      this.#models.delete(metrics)
    })
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

  #collectGauges(): void {
    const models = this.#models
    const gauge = (name: string, help: string, read: (state: ModelState) => number) =>
      new Gauge({
        name,
        help,
        labelNames: MODEL,
        registers: [this.#registry],
        collect() {
          this.reset()
          for (const model of models) if (model.state) this.set(model.labels, read(model.state()))
        },
      })
    gauge('torchserve_ts_queue_depth', 'Requests that wait for a worker', (state) => state.queued)
    gauge('torchserve_ts_open_requests', 'Requests that have not ended', (state) => state.open)
    gauge('torchserve_ts_open_streams', 'Streams that have begun and not ended', (state) => state.streams)
    new Gauge({
      name: 'torchserve_ts_workers',
      help: 'Workers by state',
      labelNames: [...MODEL, 'state'],
      registers: [this.#registry],
      collect() {
        this.reset()
        for (const model of models) {
          for (const state of model.state?.().workerStates ?? []) this.inc({ ...model.labels, state })
        }
      },
    })
  }
}

/** The metrics of one model version. */
export class ModelMetrics {
  readonly labels: { model_name: string; model_version: string }
  state: (() => ModelState) | undefined
  readonly #host: string
  readonly #collectors: Collectors
  readonly #remove: () => void

  constructor(name: string, version: string, host: string, collectors: Collectors, remove: () => void) {
    this.labels = { model_name: name, model_version: version }
    this.#host = host
    this.#collectors = collectors
    this.#remove = remove
  }

  /** How to look at the model's state, from now until `unwatch`. */
  watch(state: () => ModelState): void {
    this.state = state
  }

  unwatch(): void {
    this.#remove()
  }

  /** A request for this model arrived; counted before the queue is asked, as in TorchServe. */
  requested(job: EndedJob): void {
    this.#collectors.requests.inc(this.#torchserveLabels(job))
  }

  ended(job: EndedJob): void {
    const { collectors, labels } = { collectors: this.#collectors, labels: this.labels }
    const now = performance.now()
    const torchserve = this.#torchserveLabels(job)
    collectors.latency.inc(torchserve, Math.max(0, (now - job.createdAt) * 1000))
    if (job.startedAt !== undefined)
      collectors.queueLatency.inc(torchserve, (job.startedAt - job.createdAt) * 1000)
    if (job.firstResponseAt !== undefined) {
      collectors.firstResponse.observe(labels, (job.firstResponseAt - job.createdAt) / 1000)
    }
    collectors.ended.inc({
      ...labels,
      kind: job.streaming ? 'stream' : 'unary',
      outcome: job.outcome ?? 'finished',
    })
  }

  /** A worker process of this model ended unasked. */
  workerLost(): void {
    this.#collectors.workerLost.inc(this.labels)
  }

  #torchserveLabels(job: EndedJob): Record<'model_name' | 'model_version' | 'hostname', string> {
    return {
      model_name: this.labels.model_name,
      model_version: job.request.modelVersion ?? 'default',
      hostname: this.#host,
    }
  }
}

type Collectors = ReturnType<typeof createCollectors>

function createCollectors(registry: Registry) {
  const registers = [registry]
  const torchserve = (name: string, unit: string) =>
    new Counter({ name, help: counterHelp(unit), labelNames: [...MODEL, 'hostname'], registers })
  return {
    requests: torchserve('ts_inference_requests_total', 'Count'),
    latency: torchserve('ts_inference_latency_microseconds', 'Microseconds'),
    queueLatency: torchserve('ts_queue_latency_microseconds', 'Microseconds'),
    ended: new Counter({
      name: 'torchserve_ts_requests_ended_total',
      help: 'Requests by kind (stream, unary) and outcome (finished, failed, cancelled, timed_out)',
      labelNames: [...MODEL, 'kind', 'outcome'],
      registers,
    }),
    firstResponse: new Histogram({
      name: 'torchserve_ts_first_response_seconds',
      help: 'Time from the arrival of a request to its first response',
      labelNames: MODEL,
      buckets: SECONDS,
      registers,
    }),
    workerLost: new Counter({
      name: 'torchserve_ts_worker_deaths_total',
      help: 'Workers that ended unasked',
      labelNames: MODEL,
      registers,
    }),
  }
}

function counterHelp(unit: string): string {
  return `Torchserve prometheus counter metric with unit: ${unit}`
}
