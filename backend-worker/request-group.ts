import type { Outlet } from './outlet.ts'
import type { ResponseStream } from './response-stream.ts'

/** The requests that one call of the handler is about: a batch, or a step of continuous batching. */
export interface RequestGroup {
  readonly streams: readonly ResponseStream[]
  readonly requestIds: readonly string[]
  readonly outlet: Outlet
  readonly rank: number
  /** Whether nobody waits for any of the requests any more. */
  readonly gone: boolean
  /** Aborts when the group is gone. */
  readonly signal: AbortSignal
  /** Steps only: whether a request takes part in the next one. */
  setNext?(index: number, next: boolean): void
}
