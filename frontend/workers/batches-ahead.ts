import type { Batch } from './in-flight.ts'

/** Milliseconds of work that may wait at a worker. A batch that takes longer gives back what waits. */
export const WORK_AHEAD_MS = 4
/** Weight of a shorter batch in the moving average. */
const EASING = 1 / 8

/**
 * How long the batches of one worker take, and so how many may wait at it. A batch that takes longer than
 * expected counts at once, shorter ones slowly: work must not wait behind a long batch.
 */
class Pace {
  readonly #most: number
  #begun = 0
  #expected = WORK_AHEAD_MS

  /** `most` batches may wait, however short they are. */
  constructor(most: number) {
    this.#most = most
  }

  /** A batch begins at this time of performance.now(). */
  begin(now: number): void {
    this.#begun = now
  }

  /** It has ended. */
  end(now: number): void {
    const took = now - this.#begun
    this.#expected = took > this.#expected ? took : this.#expected + (took - this.#expected) * EASING
  }

  /** Whether the running batch has run for WORK_AHEAD_MS. */
  isSlow(now: number): boolean {
    return now - this.#begun >= WORK_AHEAD_MS
  }

  /** How many batches may wait behind the running one. */
  allowance(now: number): number {
    if (this.isSlow(now)) return 0
    return Math.min(this.#most, Math.floor(WORK_AHEAD_MS / this.#expected))
  }
}

/**
 * The batches that wait at a worker behind the running one (docs/batching.md), oldest first. Nothing waits
 * behind a batch that takes long, because another worker may be free first.
 */
export class BatchesAhead {
  readonly #pace: Pace
  readonly #withdraw: (ids: number[]) => void
  #batches: Batch[] = []
  #timer: NodeJS.Timeout | undefined

  /** At most `most` batches wait; `withdraw` asks the worker for the batches with these requests. */
  constructor(most: number, withdraw: (ids: number[]) => void) {
    this.#pace = new Pace(most)
    this.#withdraw = withdraw
  }

  /** How many more may wait. */
  get room(): number {
    return this.#pace.allowance(performance.now()) - this.#batches.length
  }

  /** Number of requests that wait. */
  get requests(): number {
    return this.#batches.reduce((count, batch) => count + batch.entries.length, 0)
  }

  /** The batch in front of all these begins, at this time of performance.now(). */
  begin(now: number): void {
    this.#pace.begin(now)
  }

  /** It has ended. Returns the batch that begins now. */
  end(now: number): Batch | undefined {
    this.#pace.end(now)
    return this.#batches.shift()
  }

  /** A batch was sent to wait; it comes back to its owner if it does not begin. */
  add(batch: Batch): void {
    for (const entry of batch.entries) entry.job.heldBy(entry)
    this.#batches.push(batch)
    this.#timer ??= setTimeout(this.#withdrawFromSlow, WORK_AHEAD_MS)
  }

  /** Asks the worker for these batches, each once. Default: all. */
  withdraw(batches: readonly Batch[] = this.#batches): void {
    const asked = batches.filter((batch) => !batch.withdrawn)
    for (const batch of asked) batch.withdrawn = true
    if (asked.length > 0) this.#withdraw(asked.map(({ entries }) => entries[0]!.id))
  }

  /** Takes out the batches that the worker gave back. */
  remove(batches: ReadonlySet<Batch>): void {
    this.#batches = this.#batches.filter((batch) => !batches.has(batch))
  }

  /** The worker is gone. Returns what waited. */
  clear(): Batch[] {
    clearTimeout(this.#timer)
    return this.#batches.splice(0)
  }

  readonly #withdrawFromSlow = (): void => {
    this.#timer = undefined
    if (this.#batches.length === 0) return
    if (this.#pace.isSlow(performance.now())) this.withdraw()
    this.#timer = setTimeout(this.#withdrawFromSlow, WORK_AHEAD_MS)
  }
}

/** Gives batches back in one call, so that the queue has all of them before it hands out the oldest. */
export function giveBack(batches: readonly Batch[]): void {
  batches[0]?.owner?.returned(batches.flatMap(({ jobs }) => jobs))
}
