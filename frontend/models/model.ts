import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { ServeError } from '../../common/errors.ts'
import { removeSync } from '../../common/files.ts'
import { hasTensorMethod, type ListedMethod } from '../../common/handler-methods.ts'
import type { ModelMetrics } from '../observe/metrics/model-metrics.ts'
import type { Tracing } from '../observe/traces/tracing.ts'
import type { Job } from '../jobs/job.ts'
import { type CutJobs, type JobIndex, OpenJobs, queueFull } from '../jobs/open-jobs.ts'
import { Autoscaler } from './autoscaler.ts'
import { createScheduler, jobsPerBatch, type ModelSettings } from './model-settings.ts'
import { modelFailed, type ModelFailure, noWorker } from './model-errors.ts'
import { checkSize } from '../jobs/job-request.ts'
import type { Scheduler } from '../jobs/scheduler.ts'
import type { SequenceHeaders } from '../jobs/sequence-headers.ts'
import type { SourceFiles } from './source-files.ts'
import type { TrafficVersion } from './traffic.ts'
import type { WorkerPool } from './worker-pool.ts'

/** Makes the workers of a model. Starts none before `scale`. */
export type WorkerPoolFactory = (model: Model) => WorkerPool

export interface ModelOptions {
  name: string
  /** Index of open jobs by id. */
  jobs: JobIndex
  /** What was registered: archive name, folder or URL. */
  url: string
  /** Handler given in the register call. */
  handlerOverride?: string
  prepared: PreparedModel
  /** The SHA-256 that its archive had to have; default: any. */
  pin?: string
  /** What it was loaded from, as it was then; absent: nobody can load it again. */
  source?: SourceFiles
  settings: ModelSettings
  metrics: ModelMetrics
  loadedAtStartup: boolean
  /** Whether a snapshot brought it back; default false. */
  restored?: boolean
  /** Envelope of its requests; default: none. */
  envelope?: string
  workflowNode?: NodeOrigin
  /** Maximum bytes of a request body: max_request_size. */
  maxRequestBytes: number
  sequenceHeaders: SequenceHeaders
  /** Makes spans of its jobs; absent: tracing is off. */
  tracing?: Tracing
}

/** The workflow that a model belongs to, and its role. As in TorchServe, `functions` are not listed. */
export interface NodeOrigin {
  workflow: string
  kind: 'model' | 'functions'
}

/** One version of a model: files, settings, queue and workers. */
export class Model {
  readonly name: string
  readonly version: string
  readonly url: string
  readonly handlerOverride: string | undefined
  readonly prepared: PreparedModel
  /** Undefined: any archive would do. */
  readonly pin: string | undefined
  readonly source: SourceFiles | undefined
  readonly settings: ModelSettings
  readonly metrics: ModelMetrics
  readonly loadedAtStartup: boolean
  readonly restored: boolean
  readonly envelope: string | undefined
  /** Undefined: the model does not belong to a workflow. */
  readonly workflowNode: NodeOrigin | undefined
  readonly queue: Scheduler
  readonly sequenceHeaders: SequenceHeaders
  readonly workers: WorkerPool
  readonly #open: OpenJobs
  /** Undefined: the number of workers is minWorkers. */
  readonly #autoscaler: Autoscaler | undefined
  readonly #maxRequestBytes: number
  #methods: readonly ListedMethod[] | undefined
  #slots: number
  /** Milliseconds since the epoch. */
  readonly registeredAt = Date.now()
  /** Requested number of workers, as scale sets it and describe shows it: bounds, if the model scales. */
  minWorkers: number
  maxWorkers: number
  /** Its part in the weights of its name, which the registry sets; undefined: it has none. */
  traffic: TrafficVersion | undefined

  constructor(options: ModelOptions, createPool: WorkerPoolFactory) {
    this.name = options.name
    this.version = options.prepared.version
    this.url = options.url
    this.handlerOverride = options.handlerOverride
    this.prepared = options.prepared
    this.pin = options.pin
    this.source = options.source
    this.settings = options.settings
    this.#slots = options.settings.maxConcurrency
    this.metrics = options.metrics
    this.loadedAtStartup = options.loadedAtStartup
    this.restored = options.restored ?? false
    this.envelope = options.envelope
    this.workflowNode = options.workflowNode
    this.#maxRequestBytes = options.maxRequestBytes
    this.minWorkers = options.settings.minWorkers
    this.maxWorkers = options.settings.maxWorkers
    this.sequenceHeaders = options.sequenceHeaders
    this.queue = createScheduler(options.name, options.settings, options.sequenceHeaders)
    this.workers = createPool(this)
    const { tracing } = options
    this.#open = new OpenJobs(options.jobs, {
      version: this.version,
      idempotent: this.settings.idempotent,
      gaps: this.metrics.tally.gaps,
      trace: tracing && ((job) => (job.request.sender?.span ?? tracing).job(job, this)),
      ended: (job) => this.metrics.ended(job),
    })
    const { scaling } = options.settings
    this.#autoscaler = scaling && new Autoscaler(this, scaling, jobsPerBatch(options.settings))
    this.metrics.watch(() => ({
      queued: this.queue.pending,
      queuedSince: this.queue.backlog().since,
      runningSince: this.#open.runningSince,
      open: this.#open.size,
      streams: this.#open.progress().streams,
      workerStates: this.workers.describe().map((worker) => worker.state),
      workersWanted: this.workers.wanted,
      trafficShare: this.traffic?.share,
      ...this.workers.load(),
      failing: this.workers.failure !== undefined,
    }))
  }

  /** Methods of its handler; undefined until a worker has loaded it. */
  get methods(): readonly ListedMethod[] | undefined {
    return this.#methods
  }

  /** Records the methods of the handler, once a worker has loaded it. */
  handlerLoaded(methods: readonly ListedMethod[]): void {
    this.#methods = methods
    const { maxConcurrency, tensorConcurrency } = this.settings
    // A `handle` expects one batch at a time.
    const isAsync = hasTensorMethod(methods) && !methods.includes('handle')
    this.#slots = isAsync ? tensorConcurrency : maxConcurrency
    const wakeMs = this.#autoscaler?.loaded()
    if (wakeMs !== undefined) this.metrics.woke(wakeMs)
  }

  /** Whether its workers follow its load. */
  get scales(): boolean {
    return this.#autoscaler !== undefined
  }

  /**
   * Whether it can serve without a worker, because the first request starts one. Only what a worker has
   * loaded once: the dialects need the handler's methods before they have a request.
   */
  get wakes(): boolean {
    return this.#methods !== undefined && this.#autoscaler?.wakes === true
  }

  /** Number of requests that have not ended. */
  get open(): number {
    return this.#open.size
  }

  /** Of the open requests: how many are streams that have begun, and what they have answered. */
  progress(): { streams: number; items: number; bytes: number } {
    return this.#open.progress()
  }

  /** Number of requests that have ended. */
  get ended(): number {
    return this.metrics.tally.ended
  }

  /** Batches that one worker runs at once. */
  get slots(): number {
    return this.#slots
  }

  /** @throws ServeError PAYLOAD_TOO_LARGE, NO_WORKER, MODEL_FAILED, QUEUE_FULL */
  submit(job: Job): void {
    this.metrics.requested(job)
    checkSize(job.request, this.#maxRequestBytes)
    if (this.workers.wanted === 0 && !this.wakes) throw noWorker(this.name, job)
    const { failure } = this.workers
    if (failure !== undefined) throw modelFailed(this.name, failure)
    if (this.settings.useJobTicket && !this.queue.couldStart(job))
      throw queueFull(
        `No worker of model "${this.name}" is free, and with useJobTicket requests do not wait. Retry later, or ` +
          'add workers.',
      )
    this.#open.add(job)
    try {
      this.queue.add(job)
    } catch (refusal) {
      this.#open.withdraw(job, ServeError.from(refusal))
      throw refusal
    }
    if (job.startedAt === undefined) this.#autoscaler?.waits()
  }

  /** No worker can load it: ends the waiting jobs. */
  failWaiting(failure: ModelFailure): void {
    this.queue.failAll(modelFailed(this.name, failure))
  }

  /** Waits up to `graceMs` milliseconds until no job is open. @returns how many of them are left */
  settled(graceMs: number): Promise<number> {
    return this.#open.settled(graceMs)
  }

  /**
   * Waits up to `graceMs` milliseconds until no job is open, then ends the rest with `reason`. Default: the
   * server is shutting down.
   */
  drain(graceMs: number, reason?: ServeError): Promise<CutJobs> {
    return this.#open.drain(graceMs, reason)
  }

  /**
   * Sets the number of workers, or its bounds. A model that scales keeps the workers that it has within them;
   * if none has loaded it yet, one does, even with minWorkers 0.
   * @throws ServeError INVALID_MODEL when the model has no handler to load, and errors of WorkerPool.scale
   */
  async scale(minWorkers: number, maxWorkers: number): Promise<void> {
    const { handlerProblem } = this.prepared
    const count = this.scales ? this.#within(minWorkers, maxWorkers) : minWorkers
    if (count > 0 && handlerProblem !== undefined) throw handlerProblem
    this.minWorkers = minWorkers
    this.maxWorkers = maxWorkers
    const scaled = this.workers.scale(count)
    this.#autoscaler?.watch()
    if (count === 0 && !this.wakes)
      this.queue.failAll(new ServeError('NO_WORKER', `Model "${this.name}" was scaled to 0 workers`))
    await scaled
  }

  /** Ends its load: no worker starts any more. */
  async callOff(): Promise<void> {
    this.#autoscaler?.stop()
    await this.workers.stop(0)
  }

  /**
   * Ends waiting jobs, stops the workers and removes the unpacked files. @throws ServeError CLEANUP_TIMEOUT
   */
  async close(reason: ServeError, graceMs: number): Promise<void> {
    this.#autoscaler?.stop()
    this.queue.failAll(reason)
    this.queue.close()
    try {
      await this.workers.stop(graceMs)
    } finally {
      this.metrics.unwatch()
      await this.prepared.dispose()
    }
  }

  /** Kills its processes and removes the unpacked files, synchronously. Resolves as WorkerPool.kill does. */
  kill(): Promise<void> {
    this.#autoscaler?.stop()
    const ended = this.workers.kill()
    removeSync(this.prepared.workDir)
    return ended
  }

  #within(minWorkers: number, maxWorkers: number): number {
    const least = this.#methods === undefined ? Math.max(1, minWorkers) : minWorkers
    return Math.min(maxWorkers, Math.max(least, this.workers.wanted))
  }
}
