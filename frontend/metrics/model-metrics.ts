import { Tally, type Outcome } from './tally.ts'

/** What the metrics want to know of a job. Times are performance.now() milliseconds. */
export interface CountedJob {
  readonly request: { readonly modelVersion?: string }
  readonly createdAt: number
  readonly startedAt: number | undefined
  readonly firstResponseAt: number | undefined
  readonly outcome: Outcome | undefined
  readonly streaming: boolean
}

/** The state of one model version, looked at when the page is asked for. */
export interface ModelState {
  queued: number
  open: number
  streams: number
  workerStates: string[]
}

/** The metrics of one model version. */
export class ModelMetrics {
  readonly labels: { model_name: string; model_version: string }
  readonly tally = new Tally()
  /** How to look at the model's state; undefined before it runs. */
  state: (() => ModelState) | undefined
  readonly #remove: (metrics: ModelMetrics) => void

  constructor(name: string, version: string, remove: (metrics: ModelMetrics) => void) {
    this.labels = { model_name: name, model_version: version }
    this.#remove = remove
  }

  watch(state: () => ModelState): void {
    this.state = state
  }

  /** The model is gone: so are its metrics. */
  unwatch(): void {
    this.#remove(this)
  }

  /** A request for this model arrived; counted before the queue is asked, as in TorchServe. */
  requested(job: CountedJob): void {
    this.tally.version(job.request.modelVersion).requests += 1
  }

  ended(job: CountedJob): void {
    const version = this.tally.version(job.request.modelVersion)
    version.latencyMicroseconds += (performance.now() - job.createdAt) * 1000
    if (job.startedAt !== undefined) version.queueMicroseconds += (job.startedAt - job.createdAt) * 1000
    if (job.firstResponseAt !== undefined) {
      this.tally.firstResponse.observe((job.firstResponseAt - job.createdAt) / 1000)
    }
    this.tally.endings[job.streaming ? 'stream' : 'unary'][job.outcome ?? 'finished'] += 1
  }

  /** A worker of this model ended unasked. */
  workerLost(): void {
    this.tally.workerDeaths += 1
  }
}
