import {
  LISTED_METHODS,
  type ListedMethod,
  NATIVE_METHODS,
  type NativeMethod,
} from '../common/handler-methods.ts'
import type { PredictRequest } from '../protocol/messages.ts'
import type { Context, Handler } from './handler.ts'
import { openaiCalls } from './openai/calls.ts'
import { handleByOpenAI } from './openai/default-handle.ts'
import { isInferenceHandler, TensorAdapter } from './open-inference/handler.ts'
import type { InferenceHandler } from './open-inference/types.ts'

/** How the worker calls a native method. */
export interface NativeCall {
  /** Each request has its own call; else the requests of a batch share one. */
  readonly alone: boolean
  /** Answers requests as `handle` does, with undecoded parts. */
  answer(requests: readonly PredictRequest[], context: Context): unknown
}

export type NativeCalls = ReadonlyMap<NativeMethod, NativeCall>

/** A handler that may have native methods instead of `handle`. */
export type ExportedHandler = Omit<Handler, 'handle'> & Partial<Pick<Handler, 'handle'>> & InferenceHandler

/** A handler as the worker calls it. */
export interface LoadedHandler extends Pick<
  Handler,
  'handle' | 'explain' | 'describe' | 'initialize' | 'release' | 'onSequenceEnd' | 'shutdown'
> {
  readonly native: NativeCalls
  /** The methods that the handler itself has. */
  readonly methods: readonly ListedMethod[]
}

/**
 * The calls of a handler. A handler without `handle` gets one that uses its native methods, so that
 * TorchServe's routes work too.
 */
export function loadedHandler(exported: ExportedHandler): LoadedHandler {
  const own = exported.handle !== undefined
  const tensors = isInferenceHandler(exported) ? new TensorAdapter(exported) : undefined
  const native = new Map([...(tensors?.calls() ?? []), ...openaiCalls(exported)])
  return {
    handle: own
      ? (requests, context) => exported.handle!(requests, context)
      : (tensors?.handle ?? handleByOpenAI(exported)),
    explain: exported.explain && ((requests, context) => exported.explain!(requests, context)),
    describe: exported.describe && ((context) => exported.describe!(context)),
    initialize: (context) => exported.initialize?.(context),
    release: exported.release && ((requestId, context) => exported.release!(requestId, context)),
    onSequenceEnd: exported.onSequenceEnd && ((id, context) => exported.onSequenceEnd!(id, context)),
    shutdown: () => exported.shutdown?.(),
    native,
    methods: LISTED_METHODS.filter((name) => exported[name] !== undefined),
  }
}

/** Whether a value has a native method, which makes an object a handler. */
export function hasNativeMethod(value: object): boolean {
  return NATIVE_METHODS.some((name) => typeof (value as Record<string, unknown>)[name] === 'function')
}
