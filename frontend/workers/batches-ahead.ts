import type { BatchOwner } from '../jobs/scheduler.ts'
import type { Run } from './in-flight.ts'
import { Pace, WORK_AHEAD_MS } from './pace.ts'

/**
 * The batches that wait at a worker behind the running one (docs/batching.md), oldest first. Nothing waits
 * behind a batch that takes long, because another worker may be free first.
 */
export class BatchesAhead {
  readonly #pace: Pace
  readonly #withdraw: (ids: number[]) => void
  #runs: Run[] = []
  #timer: NodeJS.Timeout | undefined

  /** At most `most` batches wait; `withdraw` asks the worker for the batches of these requests. */
  constructor(most: number, withdraw: (ids: number[]) => void) {
    this.#pace = new Pace(most)
    this.#withdraw = withdraw
  }

  /** How many more may wait. */
  get room(): number {
    return this.#pace.allowance(performance.now()) - this.#runs.length
  }

  /** Number of requests that wait. */
  get requests(): number {
    return this.#runs.reduce((count, run) => count + run.entries.length, 0)
  }

  /** The batch in front of all these begins, at this time of performance.now(). */
  begin(now: number): void {
    this.#pace.begin(now)
  }

  /** It has ended. Returns the batch that begins now, and is told to its owner. */
  end(now: number): Run | undefined {
    this.#pace.end(now)
    const run = this.#runs.shift()
    const owner = run?.owner
    if (run !== undefined) run.owner = undefined
    owner?.began(run!.jobs)
    return run
  }

  /** A batch was sent to wait; it comes back to `owner` if it does not begin. */
  add(run: Run, owner: BatchOwner): void {
    run.owner = owner
    for (const entry of run.entries) entry.job.heldBy(entry)
    this.#runs.push(run)
    this.#timer ??= setTimeout(this.#withdrawFromSlow, WORK_AHEAD_MS)
  }

  /** Wants a batch back. */
  withdraw(run: Run): void {
    if (run.withdrawn) return
    run.withdrawn = true
    this.#withdraw([run.entries[0]!.id])
  }

  /** Wants all of them back. */
  withdrawAll(): void {
    const runs = this.#runs.filter((run) => !run.withdrawn)
    for (const run of runs) run.withdrawn = true
    if (runs.length > 0) this.#withdraw(runs.flatMap((run) => run.entries.map(({ id }) => id)))
  }

  /** Takes out the batches that the worker gave back. */
  remove(runs: ReadonlySet<Run>): void {
    this.#runs = this.#runs.filter((run) => !runs.has(run))
  }

  /** The worker is gone. Returns what waited. */
  clear(): Run[] {
    clearTimeout(this.#timer)
    return this.#runs.splice(0)
  }

  readonly #withdrawFromSlow = (): void => {
    this.#timer = undefined
    if (this.#runs.length === 0) return
    if (this.#pace.isSlow(performance.now())) this.withdrawAll()
    this.#timer = setTimeout(this.#withdrawFromSlow, WORK_AHEAD_MS)
  }
}

/** Gives batches back in one call, so that the queue has all of them before it hands out the oldest. */
export function giveBack(runs: readonly Run[]): void {
  runs[0]?.owner?.returned(runs.flatMap(({ jobs }) => jobs))
}
