import type { ServeError } from '../../common/errors.ts'
import type { Job, JobHolder } from './job.ts'
import type { ReplyHead } from './reply-sink.ts'

/** A worker as schedulers see it. */
export interface JobRunner {
  /** Batches that it could take now; 0 while it is busy, down or about to leave. */
  readonly freeSlots: number
  /** Takes a batch: one slot until the last job of it is finished. */
  run(jobs: readonly Job[], watcher?: RunWatcher): void
}

/** Hears how the jobs fare that a scheduler gave to a worker, and may add to their answers. */
export interface RunWatcher {
  /** An answer with a head came, at least the first and the last of the job; returns the headers to use. */
  answering(job: Job, headers: ReplyHead['headers']): ReplyHead['headers']
  /** Once: the worker has nothing of the job any more, whether it finished it or died. */
  released(job: Job): void
}

/** Who of the waiting jobs of one model version goes to which worker, and when. */
export interface Scheduler extends JobHolder {
  /** Jobs that wait. */
  readonly pending: number
  readonly remainingCapacity: number
  /** Sequences that live; absent where there are no such things. */
  readonly openSequences?: number
  /** @throws ServeError QUEUE_FULL; the job has not been touched then. */
  add(job: Job): void
  /** Whether a worker would get the job at once. */
  couldStart(job: Job): boolean
  /** Who the workers are; the list changes as they come and go. */
  serve(workers: readonly JobRunner[]): void
  /** A worker has a free slot. */
  hand(): void
  /** The worker is gone, or about to go, and with it all that it knew; it may come back as a new one. */
  workerLost(worker: JobRunner, error: ServeError): void
  /** The jobs that wait. */
  jobs(): Iterable<Job>
  /** Ends every waiting job. */
  failAll(error: ServeError): void
  close(): void
}

/** The worker with the most free slots; undefined: none has any. */
export function freest(workers: readonly JobRunner[]): JobRunner | undefined {
  let best: JobRunner | undefined
  let slots = 0
  for (const worker of workers) {
    const free = worker.freeSlots
    if (free > slots) {
      best = worker
      slots = free
    }
  }
  return best
}

/** A describe asks the handler something else than predictions: it belongs to no sequence, and shares no batch. */
export function isDescribe(job: Job): boolean {
  return job.request.method === 'describe'
}

/** Whether the job shares no batch with others. */
export function goesAlone(job: Job): boolean {
  return isDescribe(job) || job.request.alone === true
}
