import type { Dialect } from '../common/dialects.ts'
import type { Handler } from './handler.ts'
import type { NativeCalls } from './native-call.ts'
import { openaiCalls } from './openai/calls.ts'
import { handleByOpenAI } from './openai/default-handle.ts'
import { handleTensors, isInferenceHandler, tensorDialects } from './open-inference/handler.ts'

/** What the handler speaks beside TorchServe's. */
export function nativeCalls(handler: Handler): NativeCalls {
  return new Map(openaiCalls(handler))
}

/** Any of these makes an object a handler. */
export const NATIVE_METHODS = [
  'chatCompletions',
  'completions',
  'embeddings',
  'predict',
  'predictStream',
] as const

/** `handle` in terms of what a handler without one speaks. */
export function defaultHandle(handler: Handler): Handler['handle'] {
  return isInferenceHandler(handler) ? handleTensors(handler) : handleByOpenAI(handler)
}

/** What the worker announces. The Open Inference Protocol needs no calls of its own: it comes to `handle`, so that it may come in batches. */
export function dialectsOf(handler: Handler, native: NativeCalls): Dialect[] {
  return [...tensorDialects(handler), ...native.keys()]
}
