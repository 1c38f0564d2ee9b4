import type { Job } from '../jobs/job.ts'
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
  settings: ModelSettings,
  headers: SequenceHeaders,
  refusal: (job: Job) => string,
): Scheduler {
  const { continuousBatching, useJobTicket, maxBatchDelay, timeouts } = settings
  const batchSize = continuousBatching || useJobTicket ? 1 : settings.batchSize
  if (!settings.sequenceBatching) {
    return new JobQueue({ capacity: settings.jobQueueSize, batchSize, maxBatchDelay, timeouts, refusal })
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
    refusal,
  })
}
