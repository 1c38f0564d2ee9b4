import type { Outlet } from './outlet.ts'
import type { ResponseStream } from './response-stream.ts'

/** The requests of one call of the handler: a batch, or a step of continuous batching. */
export interface RequestGroup {
  readonly streams: readonly ResponseStream[]
  readonly requestIds: readonly string[]
  readonly outlet: Outlet
  readonly rank: number
  /** Whether all requests are cancelled. */
  readonly gone: boolean
  /** Aborts when all requests are cancelled. */
  readonly signal: AbortSignal
  /** Steps only: whether a request takes part in the next step. */
  setNext?(index: number, next: boolean): void
}
