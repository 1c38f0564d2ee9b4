/** The methods of a handler that a request can ask for. Frontend and worker share this table. */
export const HANDLER_METHODS = [
  /** TorchServe's method. It answers batches. */
  'handle',
  /** Explains instead of predicting. A handler without `explain` gets `handle` with `context.explain` set. */
  'explain',
  /** Metadata of the model, for a customized describe. Never batched. */
  'describe',
  /** Open Inference Protocol, unary. A handler that has only `predictStream` serves it as well. */
  'predict',
  /**
   * Open Inference Protocol, streamed. A handler that has only `predict` serves it as well, message by
   * message.
   */
  'predictStream',
  /** The OpenAI API: /v1/chat/completions. */
  'chatCompletions',
  /** The OpenAI API: /v1/completions. */
  'completions',
  /** The OpenAI API: /v1/embeddings. */
  'embeddings',
] as const

export type HandlerMethod = (typeof HANDLER_METHODS)[number]

/** Methods for other APIs than TorchServe's, which a handler may have besides `handle` or instead. */
export const NATIVE_METHODS = [
  'predict',
  'predictStream',
  'chatCompletions',
  'completions',
  'embeddings',
] as const satisfies readonly HandlerMethod[]

export type NativeMethod = (typeof NATIVE_METHODS)[number]

/**
 * The methods that the worker lists in its `loaded` message if the handler itself has them. The frontend
 * sends the requests of each API to its own method, and to `handle` where the handler has none.
 */
export const LISTED_METHODS = ['handle', ...NATIVE_METHODS] as const

export type ListedMethod = (typeof LISTED_METHODS)[number]

/** Whether a handler with these methods accepts tensors without conversion. */
export function hasTensorMethod(methods: readonly ListedMethod[]): boolean {
  return methods.includes('predict') || methods.includes('predictStream')
}

/** Groups requests that can share a call: those with the same method, in their order. */
export function byMethod<T extends { readonly method: HandlerMethod }>(
  requests: readonly T[],
): readonly (readonly T[])[] {
  const [first] = requests
  if (requests.every(({ method }) => method === first!.method)) return [requests]
  return HANDLER_METHODS.map((method) => requests.filter((request) => request.method === method)).filter(
    ({ length }) => length > 0,
  )
}

/** One named value of a request, as the client sent it. */
export interface InputPart {
  name: string
  /** Media type without parameters; absent when the client gave none. */
  contentType?: string
  data: Uint8Array
}
