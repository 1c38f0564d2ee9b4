/** What node-llama-cpp calls of a context of llama.cpp, which is not part of its interface. */
export interface NativeContext {
  decodeBatch(): Promise<void>
  sampleToken(...args: unknown[]): Promise<unknown>
}

/**
 * llama.cpp brings the logits of a batch into the order of its sequences when they are read for the first time, and node-llama-cpp before 3.22 samples a
 * batch's sequences in several threads at once, so that with a large vocabulary they got tokens of each other. Here the first of a batch is sampled alone, and the others
 * together after it. A runtime without these functions is a newer one, which sees to it itself.
 */
export function sampleFirstAlone(context: object): void {
  const native = (context as { _ctx?: Partial<NativeContext> })._ctx
  if (native?.decodeBatch === undefined || native.sampleToken === undefined) return
  const { decodeBatch, sampleToken } = native
  let first: Promise<unknown> | undefined
  define(native, 'decodeBatch', () => {
    first = undefined
    return decodeBatch.call(native)
  })
  define(native, 'sampleToken', (...args) => {
    const sample = (): Promise<unknown> => sampleToken.apply(native, args)
    if (first !== undefined) return first.then(sample, sample)
    first = sample()
    return first
  })
}

/** The runtime's objects take no plain assignment. */
function define<K extends keyof NativeContext>(native: object, name: K, value: NativeContext[K]): void {
  Object.defineProperty(native, name, { value })
}
