import type { JobTimeouts } from '../jobs/job.ts'

export type ParallelType = '' | 'pp' | 'tp' | 'pptp' | 'custom'
export type DeviceType = 'cpu' | 'gpu'

/** What is in force for one model version. Seconds and milliseconds as TorchServe's keys have them (spec 5.2). */
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
  /** Processes of one worker; 0 when the model is not parallel. */
  parallelLevel: number
  /** `gpu` only where the server has one. */
  deviceType: DeviceType
  /** The GPUs to use; undefined: all. */
  deviceIds: number[] | undefined
  /** OMP_NUM_THREADS of the workers; undefined: as the server's. Key torchrun.OMP_NUMBER_THREADS. */
  ompThreads: number | undefined
  asyncCommunication: boolean
  /** Ours: batches that one worker runs at once; 1, or 100 with asyncCommunication. Key maxConcurrency. */
  maxConcurrency: number
  /** The same of a handler of the Open Inference Protocol, which is asynchronous: 100 where the model's config does not speak of it. */
  tensorConcurrency: number
  continuousBatching: boolean
  useJobTicket: boolean
  sequenceBatching: boolean
  /** Milliseconds; 0 without sequenceBatching. */
  sequenceMaxIdleMSec: number
  /** Milliseconds; 0: no limit. */
  sequenceTimeoutMSec: number
  maxNumSequence: number
  maxSequenceJobQueueSize: number
  /** Whether a Python model has a virtual environment of its own. */
  useVenv: boolean
  timeouts: JobTimeouts
  /** Ours: milliseconds that a cancelled handler may go on; undefined: as long as it gives signs. Key cancelGraceMs. */
  cancelGraceMs: number | undefined
  /** Ours: bytes of one stream under way. Key streamWindowSize. */
  streamWindowSize: number
}
