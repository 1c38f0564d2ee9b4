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
    continuousBatching: settings.continuousBatching,
    useJobTicket: settings.useJobTicket,
    useVenv: false,
    stateful: settings.sequenceBatching,
    sequenceMaxIdleMSec: settings.sequenceMaxIdleMSec,
    sequenceTimeoutMSec: settings.sequenceTimeoutMSec,
    maxNumSequence: settings.maxNumSequence,
    maxSequenceJobQueueSize: settings.maxSequenceJobQueueSize,
    loadedAtStartup: model.loadedAtStartup,
    workers: model.workers.describe(),
    jobQueueStatus: {
      remainingCapacity: model.queue.remainingCapacity,
      pendingRequests: model.queue.pending,
    },
    openSequences: model.queue.openSequences,
  }
}
