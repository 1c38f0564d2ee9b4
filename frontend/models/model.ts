import { rmSync } from 'node:fs'
import type { PreparedModel } from '../../model-archiver/prepare.ts'
import { ServeError } from '../../common/errors.ts'
import { hasTensorMethod, type NativeMethod } from '../../common/handler-methods.ts'
import type { ModelMetrics } from '../observe/metrics/model-metrics.ts'
import type { Job } from '../jobs/job.ts'
import { createScheduler } from './create-scheduler.ts'
import type { ModelSettings } from './model-settings.ts'
import { OpenJobs } from '../jobs/open-jobs.ts'
import { checkSize } from '../jobs/request-limits.ts'
import type { Scheduler } from '../jobs/scheduler.ts'
import type { SequenceHeaders } from '../jobs/sequence-headers.ts'
import type { WorkerPool } from './worker-pool.ts'

/** Makes the workers of a model; none is started before `scale`. */
export type WorkerPoolFactory = (model: Model) => WorkerPool

export interface ModelOptions {
  name: string
  /** What was registered: archive name, folder or URL. */
  url: string
  /** Handler that the register call named. */
  handlerOverride?: string
  prepared: PreparedModel
  settings: ModelSettings
  metrics: ModelMetrics
  loadedAtStartup: boolean
  /** Of its requests; default: none. */
  envelope?: string
  workflowNode?: WorkflowNodeKind
  /** Bytes of one request body: max_request_size. */
  maxRequestBytes: number
  sequenceHeaders: SequenceHeaders
}

/** A model that belongs to a workflow. One that serves the workflow's functions is not listed, as in TorchServe. */
export type WorkflowNodeKind = 'model' | 'functions'

/** One version of a model: its files, its settings, its queue and its workers. */
export class Model {
  readonly name: string
  readonly version: string
  readonly url: string
  readonly handlerOverride: string | undefined
  readonly prepared: PreparedModel
  readonly settings: ModelSettings
  readonly metrics: ModelMetrics
  readonly loadedAtStartup: boolean
  readonly envelope: string | undefined
  /** Undefined: an ordinary model. */
  readonly workflowNode: WorkflowNodeKind | undefined
  readonly queue: Scheduler
  readonly sequenceHeaders: SequenceHeaders
  readonly workers: WorkerPool
  readonly #open: OpenJobs
  readonly #maxRequestBytes: number
  #methods: readonly NativeMethod[] | undefined
  #slots: number
  /** Milliseconds since the epoch. */
  readonly registeredAt = Date.now()
  /** Wanted bounds of the number of workers, as scale and describe know them. */
  minWorkers: number
  maxWorkers: number

  constructor(options: ModelOptions, createPool: WorkerPoolFactory) {
    this.name = options.name
    this.version = options.prepared.version
    this.url = options.url
    this.handlerOverride = options.handlerOverride
    this.prepared = options.prepared
    this.settings = options.settings
    this.#slots = options.settings.maxConcurrency
    this.metrics = options.metrics
    this.loadedAtStartup = options.loadedAtStartup
    this.envelope = options.envelope
    this.workflowNode = options.workflowNode
    this.#maxRequestBytes = options.maxRequestBytes
    this.minWorkers = options.settings.minWorkers
    this.maxWorkers = options.settings.maxWorkers
    this.sequenceHeaders = options.sequenceHeaders
    this.queue = createScheduler(options.settings, options.sequenceHeaders, (job) => this.#noWorker(job))
    this.workers = createPool(this)
    this.#open = new OpenJobs(
      (job) => {
        this.metrics.ended(job)
      },
      () => [...this.queue.jobs(), ...this.workers.jobs()],
    )
    this.metrics.watch(() => ({
      queued: this.queue.pending,
      open: this.#open.size,
      streams: this.#open.streams,
      workerStates: this.workers.describe().map((worker) => worker.state),
    }))
  }

  /** The native methods of its handler; undefined until a worker has loaded it. */
  get methods(): readonly NativeMethod[] | undefined {
    return this.#methods
  }

  /** A worker has loaded the handler, which has these native methods. */
  handlerLoaded(methods: readonly NativeMethod[]): void {
    this.#methods = methods
    const { maxConcurrency, tensorConcurrency } = this.settings
    this.#slots = hasTensorMethod(methods) ? tensorConcurrency : maxConcurrency
  }

  /** Batches that one worker runs at once. */
  get slots(): number {
    return this.#slots
  }

  /** @throws ServeError PAYLOAD_TOO_LARGE, NO_WORKER, QUEUE_FULL */
  submit(job: Job): void {
    this.metrics.requested(job)
    checkSize(job.request, this.#maxRequestBytes)
    if (this.workers.wanted === 0) throw new ServeError('NO_WORKER', this.#noWorker(job))
    if (this.settings.useJobTicket && !this.queue.couldStart(job))
      throw new ServeError('QUEUE_FULL', this.#noWorker(job))
    this.queue.add(job)
    this.#open.add(job)
  }

  /** Waits until no job is open, at most `graceMs`, then ends the rest. */
  drain(graceMs: number): Promise<void> {
    return this.#open.drain(graceMs)
  }

  /** @throws ServeError INVALID_MODEL when there is no handler that workers could load, and what WorkerPool.scale throws */
  async scale(minWorkers: number, maxWorkers: number): Promise<void> {
    const { handlerProblem } = this.prepared
    if (minWorkers > 0 && handlerProblem !== undefined) throw handlerProblem
    this.minWorkers = minWorkers
    this.maxWorkers = maxWorkers
    const scaled = this.workers.scale(minWorkers)
    if (minWorkers === 0)
      this.queue.failAll(new ServeError('NO_WORKER', `Model "${this.name}" was scaled to 0 workers`))
    await scaled
  }

  /** Ends what waits, stops the workers and removes what was unpacked. @throws ServeError CLEANUP_TIMEOUT */
  async close(reason: ServeError, graceMs: number): Promise<void> {
    this.queue.failAll(reason)
    this.queue.close()
    try {
      await this.workers.stop(graceMs)
    } finally {
      this.metrics.unwatch()
      await this.prepared.dispose()
    }
  }

  /** Ends its processes and removes what was unpacked, at once. */
  kill(): void {
    this.workers.kill()
    rmSync(this.prepared.workDir, { recursive: true, force: true })
  }

  /** TorchServe's sentence, its stray quote included (spec 1.3). */
  #noWorker(job: Job): string {
    const { modelVersion, method } = job.request
    if (method === 'describe') {
      return `Model "${this.name}" has no worker to serve describe request. Please use scale workers API to add workers.`
    }
    const version = modelVersion === undefined ? '' : ` Version ${modelVersion}"`
    return (
      `Model "${this.name}"${version} has no worker to serve inference request. Please use scale workers API to add ` +
      'workers. If this is a sequence inference, please check if it is closed, or expired; or exceeds ' +
      'maxSequenceJobQueueSize'
    )
  }
}
