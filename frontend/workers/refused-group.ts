import type { ServeError } from '../../common/errors.ts'
import type { WorkerGroup } from './worker-group.ts'

/** A worker that cannot be started here: it has no processes, and loading it fails. */
export class RefusedGroup implements WorkerGroup {
  readonly pid = -1
  readonly pids = []
  readonly finishingRanks = 1
  readonly unsentBytes = 0
  readonly answersPings = false
  readonly heedsCredit = false
  readonly takesBatchesAhead = false
  readonly hearsCancels = false
  readonly methods = []
  readonly #reason: ServeError

  constructor(reason: ServeError) {
    this.#reason = reason
  }

  load(): Promise<void> {
    return Promise.reject(this.#reason)
  }

  send(): void {
    // nobody hears it
  }

  sendToFirst(): void {
    // nobody hears it
  }

  stop(): Promise<boolean> {
    return Promise.resolve(true)
  }

  kill(): void {
    // there is nothing to kill
  }

  exited(): Promise<void> {
    return Promise.resolve()
  }
}
