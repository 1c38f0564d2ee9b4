import type { Dialect } from '../protocol/dialects.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import type { Context, Handler } from './handler.ts'
import { openaiCalls } from './openai/calls.ts'
import { handleByOpenAI } from './openai/default-handle.ts'

/**
 * Answers one request of a dialect that the handler speaks itself: like `handle` with a batch of one. Its parts arrive as they
 * were sent.
 */
export type NativeCall = (request: PredictRequest, context: Context) => unknown

export type NativeCalls = ReadonlyMap<Dialect, NativeCall>

/** What the handler speaks beside TorchServe's. */
export function nativeCalls(handler: Handler): NativeCalls {
  return new Map(openaiCalls(handler))
}

/** Any of these makes an object a handler. */
export const NATIVE_METHODS = ['chatCompletions', 'completions', 'embeddings'] as const

/** `handle` in terms of what a handler without one speaks. */
export function defaultHandle(handler: Handler): Handler['handle'] {
  return handleByOpenAI(handler)
}
