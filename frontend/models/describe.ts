import { customizedMetadata } from './collect.ts'
import type { Model } from './model.ts'
import type { ModelDescription, WorkerDescription } from './operations.ts'

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
