import type { ServeError } from '../../common/errors.ts'
import type { Job } from './job.ts'
import type { ReplyHead } from './reply-sink.ts'
import { startTimer } from '../../common/timer.ts'
import { FULL_BATCH_BYTES, requestBytes } from './job-request.ts'

/** Why a job with running work was given up. */
export type AbandonReason = 'client left' | 'deadline' | 'timeout' | 'shutdown' | 'failed' | 'operator'

/** The current holder of a job: first the queue, then a worker. */
export interface JobHolder {
  /** The job has ended but its work has not: the holder drops or stops it. */
  abandon(job: Job, reason: AbandonReason): void
  /** The client's connection has room again, after `respond` returned false. */
  drained?(job: Job): void
}

/** A worker, as schedulers see it. */
export interface JobRunner {
  /** Number of free slots; 0 while the worker is down or about to leave. */
  readonly freeSlots: number
  /** Accepts a batch, which occupies one slot until its last job has finished. */
  run(jobs: readonly Job[], watcher?: RunWatcher): void
  /** Number of batches that it accepts besides, to begin them when a slot is free; 0 while a slot is free. */
  readonly room: number
  /** Accepts a batch that begins later, or comes back to its owner. Only while there is room. */
  runLater(jobs: readonly Job[], owner: BatchOwner): void
  /** A sequence of which it got jobs has ended, and all of these have finished. */
  sequenceEnded(id: string): void
}

/** The queue of batches that wait at a worker. To their clients they are queued. */
export interface BatchOwner extends JobHolder {
  /** The worker begins the batch. */
  began(jobs: readonly Job[]): void
  /** The worker gave the batch back, or died before it began. */
  returned(jobs: readonly Job[]): void
}

/** Follows the jobs that a scheduler gave to a worker, and may add response headers. */
export interface RunWatcher {
  /**
   * A response with headers arrived: at least the first and the last of a job. Returns the headers to use.
   */
  answering(job: Job, headers: ReplyHead['headers']): ReplyHead['headers']
  /** Called once: the worker has finished the job or died. */
  released(job: Job): void
}

/** Jobs that more workers would help. */
export interface Backlog {
  readonly jobs: number
  /** performance.now() at which the oldest of them came; undefined: there is none. */
  readonly since: number | undefined
}

/** Decides which worker gets which waiting job of one model version, and when. */
export interface Scheduler extends JobHolder {
  /** Number of waiting jobs. */
  readonly pending: number
  readonly remainingCapacity: number
  /** Number of live sequences; absent for schedulers without sequences. */
  readonly openSequences?: number
  /** Whether a sequence with this id is open; absent for schedulers without sequences. */
  hasSequence?(id: string): boolean
  /** The waiting jobs that any worker could take. */
  backlog(): Backlog
  /** Whether the worker keeps the state of a sequence. */
  isBound(worker: JobRunner): boolean
  /** @throws ServeError QUEUE_FULL; the job is unchanged then */
  add(job: Job): void
  /** Whether a worker would get the job at once. */
  couldStart(job: Job): boolean
  /** Sets the list of workers, which changes as workers start and stop. */
  serve(workers: readonly JobRunner[]): void
  /** A worker has a free slot. */
  hand(): void
  /**
   * The worker is gone or leaving, and the state in it is lost. It may return as a new one. Absent: workers
   * keep no state.
   */
  workerLost?(worker: JobRunner, error: ServeError): void
  /** Ends every waiting job. */
  failAll(error: ServeError): void
  close(): void
}

/** The worker with the most free slots, or the most of another `room`; undefined if none has any. */
export function leastLoaded(workers: readonly JobRunner[], room = freeSlots): JobRunner | undefined {
  let best: JobRunner | undefined
  let most = 0
  for (const worker of workers) {
    const its = room(worker)
    if (its > most) {
      best = worker
      most = its
    }
  }
  return best
}

function freeSlots(worker: JobRunner): number {
  return worker.freeSlots
}

/** A describe is not a prediction: it belongs to no sequence and shares no batch. */
export function isDescribe(job: Job): boolean {
  return job.request.method === 'describe'
}

/** Whether the job must not share a batch. */
export function goesAlone(job: Job): boolean {
  return isDescribe(job) || job.request.alone === true
}

export interface BatchRule {
  /** Maximum number of jobs per batch. */
  readonly batchSize: number
  /** Milliseconds that a worker with a free slot waits for a batch to fill, from its oldest job on. */
  readonly maxBatchDelay: number
}

/**
 * Decides when waiting jobs leave as a batch: when the batch is full, or `maxBatchDelay` after its oldest job
 * arrived and a worker was free for it, whichever came last. So jobs that arrived while all workers were
 * busy wait for the next requests of the clients that the last batch answers.
 */
export class BatchPolicy {
  readonly #rule: BatchRule
  readonly #onDue: () => void
  /** performance.now() at which a free worker first found a batch that is not full; undefined: none has. */
  #fillingSince: number | undefined
  #timer: NodeJS.Timeout | undefined

  /** `onDue` is called when a batch has waited for its maximum delay. */
  constructor(rule: BatchRule, onDue: () => void) {
    this.#rule = rule
    this.#onDue = onDue
  }

  /**
   * The next batch, which still waits where it did; empty if none is ready. Called while a worker has a free
   * slot.
   * @param waiting oldest first
   * @param count how many wait
   * @param most how many could wait, if fewer than a batch holds
   */
  take(waiting: Iterable<Job>, count: number, most = Infinity): Job[] {
    const { batchSize } = this.#rule
    const isFull = count >= Math.min(batchSize, most)
    const batch: Job[] = []
    let bytes = 0
    for (const job of waiting) {
      const alone = goesAlone(job)
      const isFirst = batch.length === 0
      if (isFirst && !isFull && !alone && !this.#hasWaited(job)) break
      bytes += batchSize === 1 ? 0 : requestBytes(job.request)
      if (!isFirst && (alone || bytes > FULL_BATCH_BYTES)) break
      if (batch.push(job) === batchSize || alone) break
    }
    if (batch.length > 0) this.#fillingSince = undefined
    return batch
  }

  /** No worker has a free slot. */
  noWorkerIsFree(): void {
    this.#fillingSince = undefined
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  #hasWaited(oldest: Job): boolean {
    const now = performance.now()
    this.#fillingSince ??= now
    const wait = Math.max(oldest.createdAt, this.#fillingSince) + this.#rule.maxBatchDelay - now
    if (wait <= 0) return true
    this.#timer ??= startTimer(() => {
      this.#timer = undefined
      this.#onDue()
    }, Math.ceil(wait))
    return false
  }
}
