import type { Deadline } from '@grpc/grpc-js'
import { deadlineOf } from './request.ts'

/** How much earlier than our clock says a client's own deadline may fire. */
const DEADLINE_TOLERANCE_MS = 50
/** The longest time that setTimeout takes. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1

/** A call that sends a stream. */
interface StreamingCall {
  getDeadline(): Deadline
  destroy(): unknown
  on(event: 'cancelled', listener: () => void): unknown
}

/**
 * grpc-js answers a deadline by itself, but says `cancelled` only once the status has left: never, when the reader of a
 * stream stands still. Messages that still wait must not follow the status, hence `destroy`, which sends nothing itself.
 */
export function endAtDeadline(call: StreamingCall, cancel: () => void): void {
  const deadline = deadlineOf(call)
  if (deadline === undefined) return
  const rest = Math.min(Math.max(deadline - Date.now(), 0), MAX_TIMEOUT_MS)
  const timer = setTimeout(() => {
    cancel()
    call.destroy()
  }, rest)
  call.on('cancelled', () => clearTimeout(timer))
}

/** Why a cancelled call was cancelled. */
export function cancelReason(deadline: number | undefined): 'deadline' | 'client left' {
  const past = deadline !== undefined && Date.now() >= deadline - DEADLINE_TOLERANCE_MS
  return past ? 'deadline' : 'client left'
}
