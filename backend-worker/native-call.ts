import type { Dialect } from '../common/dialects.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import type { Context } from './handler.ts'

/**
 * Answers one request of a dialect that the handler speaks itself: like `handle` with a batch of one. Its parts arrive as they
 * were sent.
 */
export type NativeCall = (request: PredictRequest, context: Context) => unknown

export type NativeCalls = ReadonlyMap<Dialect, NativeCall>
