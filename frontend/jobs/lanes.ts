import type { BatchRule } from './batch-policy.ts'
import { Lane } from './lane.ts'
import type { JobRunner, RunWatcher } from './scheduler.ts'
import type { Sequence } from './sequence.ts'

/** Binds sequences to workers and dispatches batches to the workers. */
export class Lanes {
  readonly #rule: BatchRule
  readonly #watcher: RunWatcher
  readonly #lanes = new Map<JobRunner, Lane>()
  /** Unbound sequences with a job that is ready, longest wait first. */
  readonly #unbound = new Set<Sequence>()
  #workers: readonly JobRunner[] = []
  #clock = 0

  constructor(rule: BatchRule, watcher: RunWatcher) {
    this.#rule = rule
    this.#watcher = watcher
  }

  serve(workers: readonly JobRunner[]): void {
    this.#workers = workers
  }

  /** Called when the next job of the sequence may start, if there is one. */
  arm(sequence: Sequence): void {
    if (sequence.next === undefined) return
    const ready = sequence.lane?.ready ?? this.#unbound
    ready.add(sequence)
  }

  /** Sequences that have a job and no worker, longest wait first. */
  unbound(): Sequence[] {
    return [...this.#unbound]
  }

  isBound(worker: JobRunner): boolean {
    return (this.#lanes.get(worker)?.sequences.size ?? 0) > 0
  }

  /** The sequence has no job that is ready. */
  disarm(sequence: Sequence): void {
    this.#unbound.delete(sequence)
    sequence.lane?.ready.delete(sequence)
  }

  /** The sequence has ended, and its worker is told. */
  remove(sequence: Sequence): void {
    this.disarm(sequence)
    const { lane } = sequence
    lane?.sequences.delete(sequence)
    sequence.lane = undefined
    if (sequence.started) lane?.worker.sequenceEnded(sequence.id)
  }

  /** Dispatches while a worker has a free slot and a batch is ready. */
  hand(): void {
    for (const sequence of this.#unbound) {
      const lane = this.#best()
      if (lane === undefined) break
      this.#bind(sequence, lane)
    }
    for (const lane of this.#lanes.values()) lane.hand(this.#watcher)
  }

  /** Removes a worker. Returns its sequences, which are unbound now. */
  lose(worker: JobRunner): Sequence[] {
    const lane = this.#lanes.get(worker)
    if (lane === undefined) return []
    this.#lanes.delete(worker)
    lane.close()
    for (const sequence of lane.sequences) sequence.lane = undefined
    return [...lane.sequences]
  }

  close(): void {
    for (const lane of this.#lanes.values()) lane.close()
  }

  #bind(sequence: Sequence, lane: Lane): void {
    this.#unbound.delete(sequence)
    sequence.lane = lane
    lane.sequences.add(sequence)
    lane.lastGotAt = ++this.#clock
    this.arm(sequence)
  }

  /**
   * Of the workers with a free slot, the one with the fewest sequences; among equals, the one that got none
   * for longest.
   */
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
