import type { Dialect } from '../protocol/dialects.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import type { Context, Handler } from './handler.ts'
import { OpenInferenceAdapter } from './open-inference/handler.ts'

/**
 * Answers one request of a dialect that the handler speaks itself: like `handle` with a batch of one. Its parts arrive as they
 * were sent.
 */
export type NativeCall = (request: PredictRequest, context: Context) => unknown

export type NativeCalls = ReadonlyMap<Dialect, NativeCall>

/** What the handler speaks beside TorchServe's. */
export function nativeCalls(_handler: Handler): NativeCalls {
  return new Map()
}

/** What the worker announces. The Open Inference Protocol needs no calls of its own: it comes to `handle`, so that it may come in batches. */
export function dialectsOf(handler: Handler, native: NativeCalls): Dialect[] {
  const adapted = handler instanceof OpenInferenceAdapter ? handler.dialects : []
  return [...adapted, ...native.keys()]
}
