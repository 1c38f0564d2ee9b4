/** What node-llama-cpp calls of a context of llama.cpp, which is not part of its interface. */
export interface NativeContext {
  decodeBatch(): Promise<void>
  sampleToken(...args: unknown[]): Promise<unknown>
}

/**
 * llama.cpp brings the logits of a batch into the order of its sequences when they are first read. node-llama-cpp before 3.22
 * samples a batch's sequences in several threads at once, so with a large vocabulary they got tokens of each other. Here the first
 * of a batch is sampled alone, and the others together after it.
 * @throws Error when this version of node-llama-cpp has not the two private functions that this replaces
 */
export function sampleFirstAlone(context: object): void {
  const native = (context as { _ctx?: Partial<NativeContext> })._ctx
  const decodeBatch = required(native, 'decodeBatch')
  const sampleToken = required(native, 'sampleToken')
  let first: Promise<unknown> | undefined
  define(native!, 'decodeBatch', () => {
    first = undefined
    return decodeBatch.call(native)
  })
  define(native!, 'sampleToken', (...args) => {
    const sample = (): Promise<unknown> => sampleToken.apply(native, args)
    if (first !== undefined) return first.then(sample, sample)
    first = sample()
    return first
  })
}

function required<K extends keyof NativeContext>(
  native: Partial<NativeContext> | undefined,
  name: K,
): NativeContext[K] {
  const found = native?.[name]
  if (typeof found === 'function') return found as NativeContext[K]
  throw new Error(
    `node-llama-cpp has no private function LlamaContext._ctx.${name}, which keeps sequences apart; install node-llama-cpp 3.21.1`,
  )
}

/** The runtime's objects take no plain assignment. */
function define<K extends keyof NativeContext>(native: object, name: K, value: NativeContext[K]): void {
  Object.defineProperty(native, name, { value })
}
