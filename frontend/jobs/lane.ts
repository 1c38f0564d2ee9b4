import type { Job } from './job.ts'
import { BatchBytes } from './request-limits.ts'
import { goesAlone, type JobRunner } from './scheduler.ts'
import type { Sequence } from './sequence.ts'
import { startTimer } from '../../common/timer.ts'

export interface BatchRule {
  /** Maximum number of jobs per batch. */
  readonly batchSize: number
  /** Milliseconds that the oldest job may wait for its batch to fill. */
  readonly maxBatchDelay: number
}

/** The sequences of one worker, and the batches made of them: each batch has at most one job per sequence. */
export class Lane {
  readonly worker: JobRunner
  readonly sequences = new Set<Sequence>()
  /** Sequences with a job that is ready, longest wait first. */
  readonly ready = new Set<Sequence>()
  /** When it last got a sequence, as an increasing number. */
  lastGotAt: number
  readonly #rule: BatchRule
  readonly #onDue: () => void
  #timer: NodeJS.Timeout | undefined

  /** `onDue` is called when a batch has waited for its maximum delay. */
  constructor(worker: JobRunner, createdAt: number, rule: BatchRule, onDue: () => void) {
    this.worker = worker
    this.lastGotAt = createdAt
    this.#rule = rule
    this.#onDue = onDue
  }

  /** The next batch; empty if none is ready. */
  take(): Job[] {
    const batch: Job[] = []
    if (!this.#isDue()) return batch
    const bytes = new BatchBytes()
    for (const sequence of this.ready) {
      const alone = goesAlone(sequence.next!)
      if ((alone && batch.length > 0) || !bytes.take(sequence.next!.request)) break
      batch.push(sequence.begin())
      this.ready.delete(sequence)
      if (alone || batch.length === this.#rule.batchSize) break
    }
    return batch
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** A batch is ready when it is full, has a job of every sequence, or has waited long enough. */
  #isDue(): boolean {
    const { batchSize, maxBatchDelay } = this.#rule
    const [oldest] = this.ready
    if (oldest === undefined) return false
    if (this.ready.size >= Math.min(batchSize, this.sequences.size) || goesAlone(oldest.next!)) return true
    const wait = oldest.next!.createdAt + maxBatchDelay - performance.now()
    if (wait <= 0) return true
    this.#timer ??= startTimer(() => {
      this.#timer = undefined
      this.#onDue()
    }, Math.ceil(wait))
    return false
  }
}
