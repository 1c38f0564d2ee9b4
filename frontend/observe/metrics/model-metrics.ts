import type { MetricMessage } from '../../../protocol/messages.ts'
import type { Distribution } from './distribution.ts'
import type { HandlerMetrics } from './handler-metrics.ts'
import type { ServerMetrics, VersionSeries } from './server-metrics.ts'
import { Tally, type Outcome } from './tally.ts'

/** What the metrics want to know of a job. Times are performance.now() milliseconds. */
export interface CountedJob {
  readonly request: { readonly modelVersion?: string }
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly firstResponseAt: number | undefined
  readonly outcome: Outcome | undefined
  readonly streaming: boolean
  /** Where the gaps between its responses are observed, in seconds. */
  gaps: Distribution | undefined
}

/** The state of one model version, looked at when the page is asked for. */
export interface ModelState {
  queued: number
  open: number
  streams: number
  workerStates: string[]
}

/** Where the metrics of a model end up. */
export interface MetricSinks {
  readonly server: ServerMetrics
  readonly handlers: HandlerMetrics
}

/** The metrics of one model version. */
export class ModelMetrics {
  readonly labels: { model_name: string; model_version: string }
  readonly tally = new Tally()
  /** How to look at the model's state; undefined before it runs. */
  state: (() => ModelState) | undefined
  /** By the version that the client asked for; `default` when it named none. */
  readonly #versions = new Map<string, VersionSeries>()
  readonly #sinks: MetricSinks
  readonly #remove: (metrics: ModelMetrics) => void

  constructor(name: string, version: string, sinks: MetricSinks, remove: (metrics: ModelMetrics) => void) {
    this.labels = { model_name: name, model_version: version }
    this.#sinks = sinks
    this.#remove = remove
  }

  watch(state: () => ModelState): void {
    this.state = state
  }

  /** The model is gone: so are our own metrics of it. TorchServe's stay, as counters should. */
  unwatch(): void {
    this.#remove(this)
  }

  /** A request for this model arrived; counted before the queue is asked, as in TorchServe. */
  requested(job: CountedJob): void {
    job.gaps = this.tally.gaps
    this.#version(job).requests.record(1)
  }

  ended(job: CountedJob): void {
    const now = performance.now()
    const waited = (job.startedAt ?? now) - job.createdAt
    const kind = this.tally.kinds[job.streaming ? 'stream' : 'unary']
    kind.endings[job.outcome ?? 'finished'] += 1
    kind.queue.observe(waited / 1000)
    kind.whole.observe((now - job.createdAt) / 1000)
    if (job.firstResponseAt !== undefined) {
      kind.firstResponse.observe((job.firstResponseAt - job.createdAt) / 1000)
    }
    if (job.outcome === 'finished') this.#finished(job, now, waited)
  }

  /** A batch was handed to a worker, which took the frontend this long. */
  handed(milliseconds: number): void {
    this.#sinks.server.workerThreadTime.record(round(milliseconds))
  }

  /** `worker` is `W-9000-echo_1.0`. */
  workerLoaded(worker: string, milliseconds: number): void {
    this.#sinks.server.workerLoaded(worker, milliseconds)
  }

  /** A worker of this model ended unasked. */
  workerLost(): void {
    this.tally.workerDeaths += 1
  }

  /** A response of a worker was thrown away because nobody waited for it any more. */
  discarded(): void {
    this.tally.discardedResponses += 1
  }

  /** What a handler reports. */
  reported(message: MetricMessage): void {
    this.#sinks.handlers.record(message)
  }

  /** TorchServe counts times of requests that ended well only. */
  #finished(job: CountedJob, now: number, waited: number): void {
    const { latency, queue } = this.#version(job)
    latency.record(round((now - job.createdAt) * 1000))
    queue.record(round(waited * 1000))
    this.#sinks.server.queueTime.record(round(waited))
  }

  #version({ request }: CountedJob): VersionSeries {
    const asked = request.modelVersion ?? 'default'
    let series = this.#versions.get(asked)
    if (series === undefined) {
      series = this.#sinks.server.version(this.labels.model_name, asked)
      this.#versions.set(asked, series)
    }
    return series
  }
}

/** To three places: more is noise. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
