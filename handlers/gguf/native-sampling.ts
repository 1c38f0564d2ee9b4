import type { Token, TokenBias } from 'node-llama-cpp'

/** Private functions of node-llama-cpp's native context. */
export interface NativeContext {
  decodeBatch(): Promise<void>
  sampleToken(...args: unknown[]): Promise<unknown>
}

interface NativeSampler {
  applyConfig(config: object): void
  dispose(): void
}

/**
 * llama.cpp sorts the logits of a batch by sequence when they are first read. node-llama-cpp before 3.22
 * samples the sequences of a batch in several threads, so with a large vocabulary sequences got each other's
 * tokens. This samples the first sequence of a batch alone and the rest after it.
 *
 * The runtime reports probabilities after penalties, temperature and the rest. This takes those of the logits
 * themselves, from a sampler without any settings.
 * @throws Error when node-llama-cpp lacks the private functions that this replaces
 */
export function prepareSampling(context: object): void {
  const { _ctx: native, model } = context as { _ctx?: Partial<NativeContext>; model?: { _model?: unknown } }
  const decodeBatch = required(native, 'decodeBatch')
  const sampleToken = required(native, 'sampleToken')
  let first: Promise<unknown> | undefined
  define(native!, 'decodeBatch', () => {
    first = undefined
    return decodeBatch.call(native)
  })
  const withProbabilities = async (index: unknown, sampler: NativeSampler): Promise<unknown> => {
    const plain = new (sampler.constructor as new (model: unknown) => NativeSampler)(model?._model)
    try {
      plain.applyConfig({})
      const [, probabilities] = (await sampleToken.call(native, index, plain, true)) as [unknown, unknown]
      return [await sampleToken.call(native, index, sampler), probabilities]
    } finally {
      plain.dispose()
    }
  }
  define(native!, 'sampleToken', (index, sampler, probabilities) => {
    const sample = (): Promise<unknown> =>
      probabilities === true
        ? withProbabilities(index, sampler as NativeSampler)
        : sampleToken.call(native, index, sampler)
    if (first !== undefined) return first.then(sample, sample)
    first = sample()
    return first
  })
}

/** Biases by token. TokenBias.set has none for tokens that end a text. */
export function biasesOf(bias: TokenBias): Map<Token, number> {
  const { _biases: biases } = bias as unknown as { _biases?: Map<Token, number> }
  if (biases instanceof Map) return biases
  throw missing('TokenBias._biases', 'holds the biases of tokens')
}

function required<K extends keyof NativeContext>(
  native: Partial<NativeContext> | undefined,
  name: K,
): NativeContext[K] {
  const found = native?.[name]
  if (typeof found === 'function') return found as NativeContext[K]
  throw missing(`LlamaContext._ctx.${name}`, 'keeps sequences apart')
}

function missing(name: string, use: string): Error {
  return new Error(`node-llama-cpp has no private ${name}, which ${use}; install node-llama-cpp 3.21.1`)
}

/** The runtime's objects reject plain assignment. */
function define<K extends keyof NativeContext>(native: object, name: K, value: NativeContext[K]): void {
  Object.defineProperty(native, name, { value })
}
