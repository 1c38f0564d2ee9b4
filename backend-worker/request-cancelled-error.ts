import type { CancelReason } from '../protocol/messages.ts'
import { markOwn } from './own-errors.ts'

/** The abort reason of a cancelled request. Its name is `AbortError`, as in the web platform. */
export class RequestCancelledError extends Error {
  override readonly name = 'AbortError'
  readonly reason: CancelReason

  constructor(reason: CancelReason) {
    super(`The request was cancelled: ${reason}`)
    this.reason = reason
    markOwn(this)
  }
}
