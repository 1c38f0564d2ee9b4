import { startTimer } from '../../common/timer.ts'
import type { Job } from '../jobs/job.ts'
import type { RunWatcher } from '../jobs/scheduler.ts'
import type { InFlight } from './in-flight.ts'

/** How long work that should end may go on at a worker. */
export interface HangLimits {
  /** Milliseconds that a cancelled request may continue; undefined: as long as it sends something. */
  readonly cancelGraceMs: number | undefined
  /** Milliseconds without a response after which a cancelled request counts as hung; undefined: never. */
  readonly silenceMs: number | undefined
  /** Milliseconds that the other ranks have after rank 0 has answered. */
  readonly rankLagMs: number
  /** Whether ending the worker now would fail requests that are wanted. */
  harmsOthers(): boolean
  /** The worker must be ended. */
  onHung(why: string): void
}

/** Milliseconds for responses to arrive that a paused connection held back. */
const FIRST_SIGN_MS = 1000

/**
 * Requests that were sent together. They occupy one slot of their worker until every rank has finished the
 * last of them, also when their jobs have ended before.
 */
export class Batch {
  readonly jobs: readonly Job[]
  readonly watcher: RunWatcher | undefined
  readonly entries: InFlight[] = []
  unfinished: number
  /** Number of responses to requests that had ended. */
  discarded = 0
  #grace: HangTimer | undefined
  #silence: HangTimer | undefined

  constructor(jobs: readonly Job[], watcher: RunWatcher | undefined) {
    this.jobs = jobs
    this.watcher = watcher
    this.unfinished = jobs.length
  }

  /** Whether at least one of its jobs is open. */
  get wanted(): boolean {
    return this.jobs.some((job) => !job.ended)
  }

  /** Every request is cancelled; the last response came `silentMs` ago. */
  cancelled(limits: HangLimits, silentMs: number): void {
    const { cancelGraceMs, silenceMs } = limits
    if (cancelGraceMs !== undefined) this.#mustEnd(limits, cancelGraceMs)
    if (silenceMs === undefined) return
    const why = `a cancelled request sent nothing for ${silenceMs} ms; the worker is restarted`
    this.#silence ??= new HangTimer(limits, silenceMs, why, () => this.discarded)
    // A client that did not read may have held responses back, so they get some time to arrive.
    this.#silence.start(Math.max(silenceMs - silentMs, FIRST_SIGN_MS))
  }

  /** Rank 0 has finished a request: the other ranks do the same work, so they finish soon, or hang. */
  finishing(limits: HangLimits): void {
    this.#mustEnd(limits, limits.rankLagMs)
  }

  stopTimers(): void {
    this.#grace?.stop()
    this.#silence?.stop()
  }

  #mustEnd(limits: HangLimits, ms: number): void {
    const why = `a cancelled request ran for longer than ${ms} ms; the worker is restarted`
    this.#grace ??= new HangTimer(limits, ms, why, () => 0)
    this.#grace.start(ms)
  }
}

/** Reports a worker whose batch should end and goes on. */
class HangTimer {
  readonly #limits: HangLimits
  readonly #ms: number
  readonly #why: string
  readonly #signs: () => number
  #timer: NodeJS.Timeout | undefined

  /** @param signs the number of signs that it does not hang */
  constructor(limits: HangLimits, ms: number, why: string, signs: () => number) {
    this.#limits = limits
    this.#ms = ms
    this.#why = why
    this.#signs = signs
  }

  /** The time begins anew after a sign, and while a step that other requests wait for may be long. */
  start(ms: number): void {
    const seen = this.#signs()
    this.#timer ??= startTimer(() => {
      this.#timer = undefined
      if (this.#signs() > seen || this.#limits.harmsOthers()) this.start(this.#ms)
      else this.#limits.onHung(this.#why)
    }, ms)
  }

  stop(): void {
    clearTimeout(this.#timer)
  }
}
