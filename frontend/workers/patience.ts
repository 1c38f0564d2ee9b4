import type { Run } from './in-flight.ts'
import { startTimer } from '../../common/timer.ts'

/** How long work that should end may go on. */
export interface PatienceOptions {
  /** Milliseconds that a cancelled request may continue; undefined: as long as it sends something. */
  cancelGraceMs: number | undefined
  /** Milliseconds without a response after which a cancelled request counts as hung; undefined: never. */
  silenceMs: number | undefined
  /** Milliseconds that the other ranks have after rank 0 has answered. */
  rankLagMs: number
  /** Cancelled work does not end. */
  onDeaf(why: string): void
}

/** Milliseconds for responses to arrive that a paused connection held back. */
const FIRST_SIGN_MS = 1000

/** Waits for the end of batches that nobody wants any more, or that other ranks have finished. */
export class Patience {
  readonly #options: PatienceOptions
  readonly #harmsOthers: () => boolean

  /** @param harmsOthers whether ending the worker now would fail requests that are wanted */
  constructor(options: PatienceOptions, harmsOthers: () => boolean) {
    this.#options = options
    this.#harmsOthers = harmsOthers
  }

  /** Every request of the batch is cancelled; the last response came `silentMs` ago. */
  cancelled(run: Run, silentMs: number): void {
    const { cancelGraceMs, silenceMs } = this.#options
    if (cancelGraceMs !== undefined) this.#expectEnd(run, cancelGraceMs)
    if (silenceMs !== undefined) this.#expectSigns(run, silenceMs, silentMs)
  }

  /** Rank 0 has finished a request of the batch. */
  finishing(run: Run): void {
    this.#expectEnd(run, this.#options.rankLagMs)
  }

  /** A step that other requests wait for may be long; a cancelled request leaves after it. */
  #expectEnd(run: Run, withinMs: number): void {
    run.graceTimer ??= startTimer(() => {
      run.graceTimer = undefined
      if (this.#harmsOthers()) this.#expectEnd(run, withinMs)
      else
        this.#options.onDeaf(
          `a cancelled request ran for longer than ${withinMs} ms; the worker is restarted`,
        )
    }, withinMs)
  }

  /** A client that did not read may have held responses back, so they get some time to arrive. */
  #expectSigns(run: Run, limitMs: number, silentMs: number): void {
    const seen = run.discarded
    run.silenceTimer ??= startTimer(
      () => {
        run.silenceTimer = undefined
        if (run.discarded > seen || this.#harmsOthers()) this.#expectSigns(run, limitMs, 0)
        else
          this.#options.onDeaf(`a cancelled request sent nothing for ${limitMs} ms; the worker is restarted`)
      },
      Math.max(limitMs - silentMs, FIRST_SIGN_MS),
    )
  }
}
