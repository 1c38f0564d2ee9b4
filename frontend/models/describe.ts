import type { Model } from './model.ts'
import type { ModelDescription, ModelStatus, WorkerDescription } from './operations.ts'
import type { ServeError } from '../../common/errors.ts'
import { tryParseJson } from '../../common/exact-json.ts'
import { isObject } from '../../common/json.ts'
import { newRequestId } from '../jobs/job-request.ts'
import { Job } from '../jobs/job.ts'
import { modelFailed, noWorker } from './model-errors.ts'
import type { ReplySink } from '../jobs/reply-sink.ts'
import type { Histogram, LoadingModel, ModelOverview, WorkerOverview } from '../../common/server-events.ts'
import type { Distribution } from '../observe/metrics/tally.ts'

/** `customized` asks each handler for its metadata. GPUs are queried only if a model runs on one. */
export async function describeModels(
  models: readonly Model[],
  customized: boolean,
  gpuUsage: (() => Promise<ReadonlyMap<number, string>>) | undefined,
): Promise<ModelDescription[]> {
  const onGpu = models.some((model) => model.settings.deviceType === 'gpu')
  const usage = onGpu ? await gpuUsage?.() : undefined
  return Promise.all(
    models.map(async (model) =>
      customized
        ? { ...describeModel(model, usage), customizedMetadata: await customizedMetadata(model) }
        : describeModel(model, usage),
    ),
  )
}

/**
 * One version as describe shows it: TorchServe's fields, in the order of its docs/management_api.md.
 * @param gpuUsage text for each GPU
 */
function describeModel(model: Model, gpuUsage?: ReadonlyMap<number, string>): ModelDescription {
  const { settings } = model
  return {
    modelName: model.name,
    modelVersion: model.version,
    modelUrl: model.url,
    runtime: model.prepared.runtime,
    minWorkers: model.minWorkers,
    maxWorkers: model.maxWorkers,
    batchSize: settings.batchSize,
    maxBatchDelay: settings.maxBatchDelay,
    responseTimeout: settings.responseTimeout,
    startupTimeout: settings.startupTimeout,
    maxRetryTimeoutInSec: settings.maxRetryTimeoutInSec,
    clientTimeoutInMills: settings.clientTimeoutInMills,
    parallelType: settings.parallelType,
    parallelLevel: settings.parallelLevel,
    deviceType: settings.deviceType,
    deviceIds: settings.deviceIds,
    continuousBatching: settings.continuousBatching,
    useJobTicket: settings.useJobTicket,
    useVenv: settings.useVenv,
    stateful: settings.sequenceBatching,
    sequenceMaxIdleMSec: settings.sequenceMaxIdleMSec,
    sequenceTimeoutMSec: settings.sequenceTimeoutMSec,
    maxNumSequence: settings.maxNumSequence,
    maxSequenceJobQueueSize: settings.maxSequenceJobQueueSize,
    loadedAtStartup: model.loadedAtStartup && !model.restored,
    workers: model.workers.describe().map((worker) => withUsage(worker, gpuUsage)),
    jobQueueStatus: {
      remainingCapacity: model.queue.remainingCapacity,
      pendingRequests: model.queue.pending,
    },
    openSequences: model.queue.openSequences,
    ...scalingOf(model),
    ...trafficOf(model),
    ...archiveOf(model),
    ...failureOf(model),
  }
}

function scalingOf({ settings: { scaling }, wakes }: Model): Partial<ModelDescription> {
  if (scaling === undefined) return {}
  const { targetQueueTime, scaleUpInterval, scaleDownAfter, scaleToZeroAfter } = scaling
  const times = {
    scaleUpInterval: scaleUpInterval / 1000,
    scaleDownAfter: scaleDownAfter / 1000,
    scaleToZeroAfter: scaleToZeroAfter / 1000,
  }
  return { scaling: { targetQueueTime, ...times, wakes } }
}

function trafficOf({ traffic }: Model): Partial<ModelDescription> {
  if (traffic === undefined) return {}
  const { modelVersion: _version, ...part } = traffic.describe()
  return { traffic: part }
}

function archiveOf({ prepared: { archive }, pin }: Model): Partial<ModelDescription> {
  if (archive === undefined) return {}
  return { archiveSha256: archive.sha256, archivePinned: pin !== undefined }
}

function failureOf({ workers: { failure } }: Model): Partial<ModelDescription> {
  if (failure === undefined) return {}
  const { id, at, reason } = failure
  return { failure: { id, at: at.toISOString(), reason } }
}

function withUsage(worker: WorkerDescription, usage?: ReadonlyMap<number, string>): WorkerDescription {
  const lines = worker.deviceIds?.map((id) => usage?.get(id)).filter((line) => line !== undefined) ?? []
  return lines.length === 0 ? worker : { ...worker, gpuUsage: lines.join('; ') }
}

/**
 * Asks a worker for its handler's metadata. Anything but a JSON object becomes `{}`, as in TorchServe.
 * @throws ServeError NO_WORKER when no worker has loaded the model, MODEL_FAILED, and errors of the handler
 */
export async function customizedMetadata(model: Model): Promise<Record<string, unknown>> {
  const body = await new Promise<Uint8Array>((resolve, reject) => {
    const job = new Job(
      {
        requestId: newRequestId(),
        modelName: model.name,
        modelVersion: model.version,
        method: 'describe',
        headers: '',
        parts: [],
      },
      new CollectingSink(resolve, reject),
    )
    // describe itself says how workers fare, so it does not wait for one.
    if (model.workers.ready === 0 && model.workers.failure === undefined && !model.wakes)
      throw noWorker(model.name, job)
    model.submit(job)
  })
  return objectOrEmpty(body)
}

function objectOrEmpty(body: Uint8Array): Record<string, unknown> {
  const value = tryParseJson(body)
  return isObject(value) ? value : {}
}

/** Takes the first response as the whole answer: describe does not stream. */
class CollectingSink implements ReplySink {
  readonly #resolve: (body: Uint8Array) => void
  readonly #reject: (error: ServeError) => void

  constructor(resolve: (body: Uint8Array) => void, reject: (error: ServeError) => void) {
    this.#resolve = resolve
    this.#reject = reject
  }

  whole(_head: unknown, body: Uint8Array): void {
    this.#resolve(body)
  }

  open(): void {
    // The item follows in a later call.
  }

  write(chunk: Uint8Array, from: number, to: number): boolean {
    this.#resolve(chunk.slice(from, to))
    return true
  }

  close(): void {
    this.#resolve(new Uint8Array())
  }

  fail(error: ServeError): void {
    this.#reject(error)
  }
}

/** What a version does now, for those who watch the server. */
export function overviewOf(model: Model, isDefault: boolean): ModelOverview {
  const { queue, metrics, open } = model
  const { stream, unary } = metrics.tally.kinds
  const { streams, items, bytes } = model.progress()
  const { failure } = model.workers
  return {
    modelName: model.name,
    modelVersion: model.version,
    isDefault,
    state: stateOf(model),
    failure: failure && { id: failure.id, at: failure.at.toISOString(), reason: failure.reason },
    runtime: model.prepared.runtime,
    minWorkers: model.minWorkers,
    maxWorkers: model.maxWorkers,
    workers: model.workers.describe().map(workerOverview),
    queue: { waiting: queue.pending, room: queue.remainingCapacity },
    open,
    streams,
    methods: model.methods,
    failedInARow: metrics.tally.failedInARow,
    errors: [...metrics.tally.errors.values()].map((each) => ({ ...each })),
    trafficShare: model.traffic?.share,
    counts: {
      unary: { ...unary.endings },
      stream: { ...stream.endings },
      items: metrics.tally.items + items,
      bytes: metrics.tally.bytes + bytes,
    },
    times: {
      firstResponse: histogram(stream.firstResponse.plus(unary.firstResponse)),
      gaps: histogram(metrics.tally.gaps),
      queue: histogram(stream.queue.plus(unary.queue)),
      whole: histogram(stream.whole.plus(unary.whole)),
    },
  }
}

/** Whether no worker has loaded it yet, and one does. */
export function isStarting({ methods, workers, workflowNode }: Model): boolean {
  const waits = methods === undefined && workers.wanted > 0 && workers.failure === undefined
  return waits && workflowNode?.kind !== 'functions'
}

export function startingOverview({ name, url, registeredAt }: Model): LoadingModel {
  return { modelName: name, url, phase: 'starting workers', ageMs: Date.now() - registeredAt }
}

function stateOf({ workers, wakes }: Model): ModelOverview['state'] {
  if (workers.failure !== undefined) return 'failed'
  if (workers.ready > 0) return 'ready'
  if (workers.wanted > 0) return 'loading'
  return wakes ? 'waking' : 'stopped'
}

function workerOverview(worker: WorkerDescription): WorkerOverview {
  const { id, pid, state, memoryUsage, inFlight, restarts, lastExit } = worker
  const runs = pid > 0
  return {
    id,
    pid: runs ? pid : undefined,
    state,
    memoryBytes: runs ? memoryUsage : undefined,
    inFlight,
    restarts,
    lastExit: lastExit && { at: lastExit.at, cause: lastExit.reason, lines: lastExit.stderr },
  }
}

function histogram({ buckets, counts, sum }: Distribution): Histogram {
  return { bounds: buckets.bounds, counts: [...counts], sum }
}

/** A version as the dialects beside TorchServe's need it. */
export function statusOf(model: Model): ModelStatus {
  const { name, version, registeredAt, methods, prepared, envelope, workers } = model
  const ready = workers.ready > 0 || model.wakes
  const { failure } = workers
  return {
    ...{ name, version, registeredAt, ready, methods, config: prepared.modelConfig, envelope },
    failure: failure && modelFailed(name, failure),
  }
}
