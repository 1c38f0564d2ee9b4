import type { MetricMessage } from '../../../protocol/messages.ts'
import type { HandlerMetrics, ServerMetrics, VersionSeries } from './declared-metrics.ts'
import { labelText } from './sample.ts'
import { Tally, type Outcome } from './tally.ts'

/** What the metrics need of a job. Times are performance.now() milliseconds. */
export interface CountedJob {
  readonly request: { readonly modelVersion?: string; readonly requestId: string }
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly firstResponseAt: number | undefined
  /** Default: it ends now. */
  readonly endedAt?: number | undefined
  readonly outcome: Outcome | undefined
  /** Why it failed or timed out. */
  readonly errorCode?: string | undefined
  readonly errorText?: string | undefined
  readonly streaming: boolean
  /** Responses, and their bytes. */
  readonly items: number
  readonly bytes: number
}

/** State of one model version, read for each page. */
export interface ModelState {
  queued: number
  /** performance.now() at which the oldest request came that any worker could take; undefined: none waits. */
  queuedSince?: number
  /** performance.now() at which the oldest request that runs went to a worker; undefined: none runs. */
  runningSince?: number | undefined
  open: number
  streams: number
  workerStates: string[]
  /** Workers that it should have now; undefined: it is a workflow and has none of its own. */
  workersWanted?: number
  /** Whether none of its workers can serve; undefined: it is a workflow. */
  failing?: boolean
  /** Its share of the requests that name no version, from 0 to 1; undefined: it has no weight. */
  trafficShare?: number | undefined
  /** Slots of its ready workers, and how many of them are in use. */
  slots?: number
  busy?: number
}

/** Characters of the reason that is kept of an error. */
const MAX_REASON = 300

/** The metrics of one model version. */
export class ModelMetrics {
  readonly name: string
  /** Of this server's own metrics: see `labelText`. */
  readonly labels: string
  readonly tally = new Tally()
  /** Reads the model's state; undefined before it runs. */
  state: (() => ModelState) | undefined
  /** By requested version; undefined: the client named none. */
  readonly #versions = new Map<string | undefined, VersionSeries>()
  readonly #server: ServerMetrics
  readonly #handlers: HandlerMetrics
  /** Owners of its series. The series of requests without a version go with the last version of the name. */
  readonly owners: { readonly name: string; readonly version: string }
  /** It is unregistered: nothing that comes late makes a series again. */
  #isGone = false
  readonly #remove: (metrics: ModelMetrics) => void

  constructor(
    name: string,
    version: string,
    server: ServerMetrics,
    handlers: HandlerMetrics,
    remove: (metrics: ModelMetrics) => void,
  ) {
    this.name = name
    this.owners = { name: JSON.stringify([name]), version: JSON.stringify([name, version]) }
    this.labels = labelText(['model_name', 'model_version'], [name, version])
    this.#server = server
    this.#handlers = handlers
    this.#remove = remove
  }

  watch(state: () => ModelState): void {
    this.state = state
  }

  /** Removes the metrics of an unregistered version, unless another with its number has taken its place. */
  unwatch(): void {
    if (this.#isGone) return
    this.#isGone = true
    this.#remove(this)
  }

  /** Counts a request for this model, before it is queued, as TorchServe does. */
  requested(job: CountedJob): void {
    this.#version(job)?.requests.record(1)
  }

  ended(job: CountedJob): void {
    const { createdAt, firstResponseAt, outcome } = job
    const now = job.endedAt ?? performance.now()
    const waited = (job.startedAt ?? now) - createdAt
    const kind = this.tally.kinds[job.streaming ? 'stream' : 'unary']
    kind.endings[outcome ?? 'finished'] += 1
    this.tally.items += job.items
    this.tally.bytes += job.bytes
    kind.queue.observe(waited / 1000)
    kind.whole.observe((now - createdAt) / 1000)
    if (firstResponseAt !== undefined) kind.firstResponse.observe((firstResponseAt - createdAt) / 1000)
    if (outcome === 'failed' || outcome === 'timed_out') this.#failed(job)
    if (outcome !== 'finished') return
    // Only successful requests count, as in TorchServe.
    this.tally.failedInARow = 0
    const series = this.#version(job)
    series?.latency.record(round((now - createdAt) * 1000))
    series?.queue.record(round(waited * 1000))
    this.#server.queueTime.record(round(waited))
  }

  /** Records how long the frontend took to hand a batch to a worker, in milliseconds. */
  handed(milliseconds: number): void {
    this.#server.workerThreadTime.record(round(milliseconds))
  }

  /** `worker` is `W-9000-echo_1.0`. */
  workerLoaded(worker: string, milliseconds: number): void {
    this.tally.workerStart.observe(milliseconds / 1000)
    this.#server.workerLoaded(worker, milliseconds)
  }

  /** Removes the series of a worker that has ended for good. */
  workerGone(worker: string): void {
    this.#server.release(worker)
  }

  /** A worker can serve the request that came `milliseconds` ago, when there was none. */
  woke(milliseconds: number): void {
    this.tally.wake.observe(milliseconds / 1000)
  }

  /** Counts a worker that ended unexpectedly. */
  workerLost(): void {
    this.tally.workerDeaths += 1
  }

  /** Counts a request that weights sent to this version. */
  routed(): void {
    this.tally.routed = (this.tally.routed ?? 0) + 1
  }

  /** Counts a response that arrived after its request had ended. */
  discarded(): void {
    this.tally.discardedResponses += 1
  }

  /** Records a metric from a handler. */
  reported(message: MetricMessage): void {
    if (!this.#isGone) this.#handlers.record(message, this.name, this.owners.version)
  }

  #failed({
    errorCode: code = 'DEADLINE_EXCEEDED',
    errorText = '',
    request: { requestId },
  }: CountedJob): void {
    const { errors } = this.tally
    this.tally.failedInARow += 1
    const count = (errors.get(code)?.count ?? 0) + 1
    const reason = errorText.split('\n', 1)[0]!.slice(0, MAX_REASON)
    errors.set(code, { code, count, at: new Date().toISOString(), requestId, reason })
  }

  #version({ request: { modelVersion: asked } }: CountedJob): VersionSeries | undefined {
    let series = this.#versions.get(asked)
    if (series === undefined && !this.#isGone) {
      const owner = asked === undefined ? this.owners.name : this.owners.version
      series = this.#server.version(this.name, asked ?? 'default', owner)
      this.#versions.set(asked, series)
    }
    return series
  }
}

/** Three decimal places. */
function round(value: number): number {
  return Math.round(value * 1000) / 1000
}
