/** What a request may want of a handler, each by the name of the handler's method. The table for both processes. */
export const HANDLER_METHODS = [
  /** The one method of TorchServe's handlers, which answers batches. */
  'handle',
  /** Explains instead of predicting; `handle` with `context.explain` set where the handler has no `explain`. */
  'explain',
  /** Metadata of the model (a customized describe); no batch. */
  'describe',
  /** Tensors of the Open Inference Protocol, one response. A handler with `predictStream` alone answers it as well. */
  'predict',
  /** The same, every response as it comes. A handler with `predict` alone answers it as well, message by message. */
  'predictStream',
  /** The OpenAI API: /v1/chat/completions. */
  'chatCompletions',
  /** The OpenAI API: /v1/completions. */
  'completions',
  /** The OpenAI API: /v1/embeddings. */
  'embeddings',
] as const

export type HandlerMethod = (typeof HANDLER_METHODS)[number]

/**
 * The methods that say more than `handle`: the worker lists those that the handler has in `loaded`, and the frontend asks only for these.
 * What a handler does not have the frontend maps to `handle`.
 */
export const NATIVE_METHODS = [
  'predict',
  'predictStream',
  'chatCompletions',
  'completions',
  'embeddings',
] as const satisfies readonly HandlerMethod[]

export type NativeMethod = (typeof NATIVE_METHODS)[number]

/** Whether a handler with these methods takes tensors as they are. */
export function hasTensorMethod(methods: readonly NativeMethod[]): boolean {
  return methods.includes('predict') || methods.includes('predictStream')
}

/** Requests that may share a call: those that want the same method, in their order. */
export function byMethod<T extends { readonly method: HandlerMethod }>(
  requests: readonly T[],
): readonly (readonly T[])[] {
  const [first] = requests
  if (requests.every(({ method }) => method === first!.method)) return [requests]
  return HANDLER_METHODS.map((method) => requests.filter((request) => request.method === method)).filter(
    ({ length }) => length > 0,
  )
}
