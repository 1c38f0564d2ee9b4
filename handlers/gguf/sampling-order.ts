/** Private functions of node-llama-cpp's native context. */
export interface NativeContext {
  decodeBatch(): Promise<void>
  sampleToken(...args: unknown[]): Promise<unknown>
}

/**
 * llama.cpp sorts the logits of a batch by sequence when they are first read. node-llama-cpp before 3.22
 * samples the sequences of a batch in several threads, so with a large vocabulary sequences got each other's
 * tokens. This samples the first sequence of a batch alone and the rest after it. A runtime without these
 * functions is newer and does not need this.
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

/** The runtime's objects reject plain assignment. */
function define<K extends keyof NativeContext>(native: object, name: K, value: NativeContext[K]): void {
  Object.defineProperty(native, name, { value })
}
