import type { Job } from './job.ts'
import { goesAlone, type JobRunner } from './scheduler.ts'
import type { Sequence } from './sequence.ts'

export interface BatchRule {
  /** Jobs that one batch may hold. */
  readonly batchSize: number
  /** Milliseconds that the oldest job may wait for its batch to fill. */
  readonly maxBatchDelay: number
}

/** The sequences that one worker has, and the batches that are made of them: one job of each at most. */
export class Lane {
  readonly worker: JobRunner
  readonly sequences = new Set<Sequence>()
  /** Those that have a job to go, longest first. */
  readonly ready = new Set<Sequence>()
  /** When it got its last sequence: a number that grows. */
  lastGotAt: number
  readonly #rule: BatchRule
  readonly #onDue: () => void
  #timer: NodeJS.Timeout | undefined

  /** `onDue` is called when a batch has waited long enough. */
  constructor(worker: JobRunner, createdAt: number, rule: BatchRule, onDue: () => void) {
    this.worker = worker
    this.lastGotAt = createdAt
    this.#rule = rule
    this.#onDue = onDue
  }

  /** The next batch; empty when none is ready. */
  take(): Job[] {
    const batch: Job[] = []
    if (!this.#isDue()) return batch
    for (const sequence of this.ready) {
      const alone = goesAlone(sequence.next!)
      if (alone && batch.length > 0) break
      batch.push(sequence.begin())
      this.ready.delete(sequence)
      if (alone || batch.length === this.#rule.batchSize) break
    }
    return batch
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** Full, or with a job of every sequence that there is, or old enough. */
  #isDue(): boolean {
    const { batchSize, maxBatchDelay } = this.#rule
    const [oldest] = this.ready
    if (oldest === undefined) return false
    if (this.ready.size >= Math.min(batchSize, this.sequences.size) || goesAlone(oldest.next!)) return true
    const wait = oldest.next!.createdAt + maxBatchDelay - performance.now()
    if (wait <= 0) return true
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#onDue()
    }, Math.ceil(wait))
    return false
  }
}
