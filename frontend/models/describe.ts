import type { Model } from './model.ts'
import type { ModelDescription } from './operations.ts'

/** What describe says about one version: TorchServe's fields in TorchServe's order (spec 1.8). */
export function describeModel(model: Model): ModelDescription {
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
    deviceType: 'cpu',
    continuousBatching: false,
    useJobTicket: false,
    useVenv: false,
    stateful: false,
    sequenceMaxIdleMSec: 0,
    sequenceTimeoutMSec: 0,
    maxNumSequence: 1,
    maxSequenceJobQueueSize: 1,
    loadedAtStartup: model.loadedAtStartup,
    workers: model.workers.describe(),
    jobQueueStatus: {
      remainingCapacity: model.queue.remainingCapacity,
      pendingRequests: model.queue.pending,
    },
  }
}
