/** Private functions of node-llama-cpp's native context. */
export interface NativeContext {
  decodeBatch(): Promise<void>
  sampleToken(...args: unknown[]): Promise<unknown>
}

/**
 * llama.cpp sorts the logits of a batch by sequence when they are first read. node-llama-cpp before 3.22
 * samples the sequences of a batch in several threads, so with a large vocabulary sequences got each other's
 * tokens. This samples the first sequence of a batch alone and the rest after it.
 * @throws Error when node-llama-cpp lacks the two private functions that this replaces
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

/** The runtime's objects reject plain assignment. */
function define<K extends keyof NativeContext>(native: object, name: K, value: NativeContext[K]): void {
  Object.defineProperty(native, name, { value })
}
