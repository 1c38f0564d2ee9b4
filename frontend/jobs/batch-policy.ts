import { startTimer } from '../../common/timer.ts'
import type { Job } from './job.ts'
import { BatchBytes } from './request-limits.ts'
import { goesAlone } from './scheduler.ts'

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
   * Called while a worker has a free slot. Returns the next batch; empty if none is ready. The jobs still
   * wait where they did.
   * @param waiting oldest first
   * @param count how many wait
   * @param most how many could wait, if fewer than a batch holds
   */
  take(waiting: Iterable<Job>, count: number, most = Infinity): Job[] {
    const { batchSize } = this.#rule
    const isFull = count >= Math.min(batchSize, most)
    const batch: Job[] = []
    const bytes = new BatchBytes()
    for (const job of waiting) {
      const alone = goesAlone(job)
      if (batch.length === 0 && !isFull && !alone && !this.#hasWaited(job)) break
      if ((alone && batch.length > 0) || !bytes.take(job.request)) break
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
