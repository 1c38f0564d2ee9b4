import type { JobTimeouts } from '../jobs/time-limit.ts'
import type { ScalingSettings } from './autoscaler.ts'
import { JobQueue } from '../jobs/job-queue.ts'
import type { Scheduler } from '../jobs/scheduler.ts'
import type { SequenceHeaders } from '../jobs/sequence-headers.ts'
import { SequenceQueue } from '../jobs/sequence-queue.ts'

export type ParallelType = '' | 'pp' | 'tp' | 'pptp' | 'custom'
export type DeviceType = 'cpu' | 'gpu'

/**
 * The effective settings of one model version, in the units of TorchServe's keys (docs/batching.md,
 * docs/configuration.md).
 */
export interface ModelSettings {
  minWorkers: number
  maxWorkers: number
  batchSize: number
  maxBatchDelay: number
  responseTimeout: number
  startupTimeout: number
  maxRetryTimeoutInSec: number
  clientTimeoutInMills: number
  jobQueueSize: number
  parallelType: ParallelType
  /** Processes per worker; 0 when the model is not parallel. */
  parallelLevel: number
  /** `gpu` only if the server has one. */
  deviceType: DeviceType
  /** GPUs to use; undefined: all. */
  deviceIds: number[] | undefined
  /** Ours: threads of each process; undefined: see `threadsOf`. Key threads, or OMP_NUMBER_THREADS. */
  threads: number | undefined
  asyncCommunication: boolean
  /**
   * Ours: batches that one worker runs at once. Key maxConcurrency, default 1, with asyncCommunication 100.
   */
  maxConcurrency: number
  /**
   * Like maxConcurrency, for handlers of the Open Inference Protocol, which are asynchronous: default 100.
   */
  tensorConcurrency: number
  /**
   * Ours: maximum batches that wait at a busy worker with one slot, so that it does not idle between two. Key
   * batchesAhead, default 64; 0: none.
   */
  batchesAhead: number
  continuousBatching: boolean
  useJobTicket: boolean
  sequenceBatching: boolean
  /** Milliseconds; above 0 with sequenceBatching. The limits that follow are 0 where it is 0. */
  sequenceMaxIdleMSec: number
  /** Milliseconds; 0: no limit. */
  sequenceTimeoutMSec: number
  maxNumSequence: number
  maxSequenceJobQueueSize: number
  /** Whether a Python model has a virtual environment of its own. */
  useVenv: boolean
  timeouts: JobTimeouts
  /**
   * Ours: whether a request that its handler had begun may be repeated, by whoever sees it fail. Key
   * idempotent, default false.
   */
  idempotent: boolean
  /**
   * Ours: milliseconds that a cancelled handler may continue; undefined: as long as it responds. Key
   * cancelGraceMs.
   */
  cancelGraceMs: number | undefined
  /** Ours: maximum bytes of one stream in flight. Key streamWindowSize. */
  streamWindowSize: number
  /** Ours: how its workers follow the load; undefined: their number is minWorkers. Key scaling. */
  scaling: ScalingSettings | undefined
  /**
   * Ours: the words of the command before that of each worker. Only the server's configuration sets it: the
   * key worker_wrapper, or the field workerWrapper of its `models`.
   */
  workerWrapper: readonly string[]
  /** Ours: headers with credentials that the handler gets, in lower case. Key handler_credentials. */
  credentialHeaders: ReadonlySet<string>
}

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
