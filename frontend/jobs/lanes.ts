import { type BatchRule, Lane } from './lane.ts'
import type { JobRunner, RunWatcher } from './scheduler.ts'
import type { Sequence } from './sequence.ts'

/** Binds sequences to workers, and hands the workers their batches. */
export class Lanes {
  readonly #rule: BatchRule
  readonly #watcher: RunWatcher
  readonly #lanes = new Map<JobRunner, Lane>()
  /** Sequences that no worker has yet and that have a job to go, longest first. */
  readonly #unbound = new Set<Sequence>()
  /** The worker that keeps the state of a sequence, from the moment its first job is about to go. */
  readonly #bound = new Map<Sequence, Lane>()
  #workers: readonly JobRunner[] = []
  #clock = 0

  constructor(rule: BatchRule, watcher: RunWatcher) {
    this.#rule = rule
    this.#watcher = watcher
  }

  serve(workers: readonly JobRunner[]): void {
    this.#workers = workers
  }

  /** A job of the sequence may go, if it has one. */
  arm(sequence: Sequence): void {
    if (sequence.next === undefined) return
    const lane = this.#bound.get(sequence)
    if (lane === undefined) this.#unbound.add(sequence)
    else lane.ready.add(sequence)
  }

  /** The worker that has the sequence; undefined: none yet. */
  workerOf(sequence: Sequence): JobRunner | undefined {
    return this.#bound.get(sequence)?.worker
  }

  /** It has no job to go any more. */
  disarm(sequence: Sequence): void {
    this.#unbound.delete(sequence)
    this.#bound.get(sequence)?.ready.delete(sequence)
  }

  remove(sequence: Sequence): void {
    this.disarm(sequence)
    this.#bound.get(sequence)?.sequences.delete(sequence)
    this.#bound.delete(sequence)
  }

  /** As long as a worker has a free slot and a batch is ready. */
  hand(): void {
    for (const sequence of this.#unbound) {
      const lane = this.#best()
      if (lane === undefined) break
      this.#bind(sequence, lane)
    }
    for (const lane of this.#lanes.values()) {
      while (lane.worker.freeSlots > 0) {
        const batch = lane.take()
        if (batch.length === 0) break
        lane.worker.run(batch, this.#watcher)
      }
    }
  }

  /** Forgets a worker; returns the sequences that it had, which are bound to none now. */
  lose(worker: JobRunner): Sequence[] {
    const lane = this.#lanes.get(worker)
    if (lane === undefined) return []
    this.#lanes.delete(worker)
    lane.close()
    for (const sequence of lane.sequences) this.#bound.delete(sequence)
    return [...lane.sequences]
  }

  close(): void {
    for (const lane of this.#lanes.values()) lane.close()
  }

  #bind(sequence: Sequence, lane: Lane): void {
    this.#unbound.delete(sequence)
    this.#bound.set(sequence, lane)
    lane.sequences.add(sequence)
    lane.lastGotAt = ++this.#clock
    this.arm(sequence)
  }

  /** Of the workers with a free slot the one with the fewest sequences, and of these the one that got none for longest. */
  #best(): Lane | undefined {
    let best: Lane | undefined
    for (const worker of this.#workers) {
      if (worker.freeSlots <= 0) continue
      const lane = this.#lane(worker)
      const more = best === undefined ? -1 : lane.sequences.size - best.sequences.size
      if (more < 0 || (more === 0 && lane.lastGotAt < best!.lastGotAt)) best = lane
    }
    return best
  }

  #lane(worker: JobRunner): Lane {
    let lane = this.#lanes.get(worker)
    if (lane === undefined) {
      lane = new Lane(worker, ++this.#clock, this.#rule, () => this.hand())
      this.#lanes.set(worker, lane)
    }
    return lane
  }
}
