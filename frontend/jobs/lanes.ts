import { BatchPolicy, type BatchRule, type JobRunner, type RunWatcher } from './scheduler.ts'
import type { Job } from './job.ts'

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

/** Jobs with the same sequence id. They go to one worker, in the order in which they arrived. */
export class Sequence {
  readonly id: string
  /** Whose it is: `identity` of the sender of its first job. */
  readonly owner: string | undefined
  readonly waiting = new Set<Job>()
  readonly running = new Set<Job>()
  /** Jobs with which their client begins the sequence, also where it is open already. */
  readonly first = new WeakSet<Job>()
  /** Whether a worker has got one of its jobs, so that no other worker can continue it. */
  started = false
  /** It accepts no more jobs and ends when its present jobs are done. */
  closing = false
  gone = false
  /** The worker that keeps its state, bound when its first job is about to start. */
  lane: Lane | undefined
  /** The job that must answer before the next one may start. */
  ahead: Job | undefined
  idleTimer: NodeJS.Timeout | undefined
  lifeTimer: NodeJS.Timeout | undefined
  /** Lost with its worker: when it would have ended by itself, by performance.now(). */
  lostUntil = 0

  constructor(id: string, owner: string | undefined) {
    this.id = id
    this.owner = owner
  }

  /** The job to start next; undefined if none may start now. */
  get next(): Job | undefined {
    if (this.ahead !== undefined) return undefined
    const [job] = this.waiting
    return job !== undefined && this.first.has(job) && this.running.size > 0 ? undefined : job
  }

  /** Whether the job to start next begins it once more: the state in the worker is that of its past. */
  get beginsAnew(): boolean {
    return this.started && this.first.has(this.next!)
  }

  get isIdle(): boolean {
    return this.waiting.size === 0 && this.running.size === 0
  }

  /** Its oldest job goes to the worker. */
  begin(): Job {
    const job = this.next!
    this.waiting.delete(job)
    this.running.add(job)
    this.started = true
    this.ahead = job
    return job
  }

  stopTimers(): void {
    clearTimeout(this.idleTimer)
    clearTimeout(this.lifeTimer)
  }
}

/** The sequences of one worker, and the batches made of them: each batch has at most one job per sequence. */
class Lane {
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
