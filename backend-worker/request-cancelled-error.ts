import type { CancelReason } from '../protocol/messages.ts'
import { markOwn } from './own-errors.ts'

/** The reason of an aborted signal: nobody waits for the answer any more. Its name is `AbortError`, as the platform's. */
export class RequestCancelledError extends Error {
  override readonly name = 'AbortError'
  readonly reason: CancelReason

  constructor(reason: CancelReason) {
    super(`The request was cancelled: ${reason}`)
    this.reason = reason
    markOwn(this)
  }
}
