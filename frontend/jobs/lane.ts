import { BatchPolicy, type BatchRule } from './batch-policy.ts'
import type { Job } from './job.ts'
import type { JobRunner, RunWatcher } from './scheduler.ts'
import type { Sequence } from './sequence.ts'

/** The sequences of one worker, and the batches made of them: each batch has at most one job per sequence. */
export class Lane {
  readonly worker: JobRunner
  readonly sequences = new Set<Sequence>()
  /** Sequences with a job that is ready, longest wait first. */
  readonly ready = new Set<Sequence>()
  /** When it last got a sequence, as an increasing number. */
  lastGotAt: number
  readonly #batches: BatchPolicy

  /** `onDue` is called when a batch has waited for its maximum delay. */
  constructor(worker: JobRunner, createdAt: number, rule: BatchRule, onDue: () => void) {
    this.worker = worker
    this.lastGotAt = createdAt
    this.#batches = new BatchPolicy(rule, onDue)
  }

  /** Dispatches while the worker has a free slot and a batch is ready. */
  hand(watcher: RunWatcher): void {
    while (this.worker.freeSlots > 0) {
      const batch = this.#take()
      if (batch.length === 0) return
      this.worker.run(batch, watcher)
    }
    this.#batches.noWorkerIsFree()
  }

  /** The next batch; empty if none is ready. It is also full with a job of every sequence. */
  #take(): Job[] {
    const ready = [...this.ready]
    const jobs = ready.map((sequence) => sequence.next!)
    const batch = this.#batches.take(jobs, jobs.length, this.sequences.size)
    for (const sequence of ready.slice(0, batch.length)) {
      this.ready.delete(sequence)
      if (sequence.beginsAnew) this.worker.sequenceEnded(sequence.id)
      sequence.begin()
    }
    return batch
  }

  close(): void {
    this.#batches.close()
  }
}
