import { JobQueue } from '../jobs/job-queue.ts'
import type { ModelSettings } from './model-settings.ts'
import type { Scheduler } from '../jobs/scheduler.ts'
import type { SequenceHeaders } from '../jobs/sequence-headers.ts'
import { SequenceQueue } from '../jobs/sequence-queue.ts'

/**
 * The scheduler of one model version (docs/batching.md). With continuous batching the worker forms the
 * batches, and with job tickets nothing waits; in both cases jobs leave one by one.
 */
export function createScheduler(
  modelName: string,
  settings: ModelSettings,
  headers: SequenceHeaders,
): Scheduler {
  const { continuousBatching, maxBatchDelay, timeouts } = settings
  const batchSize = jobsPerBatch(settings)
  if (!settings.sequenceBatching) {
    const capacity = settings.jobQueueSize
    const waiting = capacity === 1 ? '1 request waits' : `${capacity} requests wait`
    const full =
      `The queue of model "${modelName}" is full: ${waiting} for a worker. Retry later, or raise ` +
      'jobQueueSize in its model-config.yaml (job_queue_size in config.properties) or its number of workers.'
    return new JobQueue({ capacity, batchSize, maxBatchDelay, timeouts, full })
  }
  return new SequenceQueue({
    batchSize,
    maxBatchDelay,
    maxSequences: settings.maxNumSequence,
    maxWaiting: settings.maxSequenceJobQueueSize,
    maxIdleMs: settings.sequenceMaxIdleMSec,
    maxLifeMs: settings.sequenceTimeoutMSec,
    overlap: continuousBatching,
    headers,
    timeouts,
    modelName,
  })
}

/** Most requests that leave the queue together. */
export function jobsPerBatch({ continuousBatching, useJobTicket, batchSize }: ModelSettings): number {
  return continuousBatching || useJobTicket ? 1 : batchSize
}
