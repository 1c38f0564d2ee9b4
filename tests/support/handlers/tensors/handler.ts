import {
  ArrayCodec,
  decodeInput,
  floatsToBrain,
  floatsToHalf,
  PredictionException,
  StringCodec,
  type Context,
  type InferenceRequest,
  type InferenceResponse,
  type InputTensor,
  type OutputTensor,
} from 'torchserve-ts'

/**
 * A handler of the Open Inference Protocol. `predict` returns every input; `predictStream` answers each
 * message with the words of its first input. Parameters of a request: `pause` (ms between words), `fail` (a
 * word to fail at), `status`, `header`, `kind` (other responses).
 */
export class Tensors {
  batches = 0

  predict(request: InferenceRequest, context: Context): InferenceResponse {
    this.batches += 1
    const { fail, status, header, kind } = request.parameters
    if (fail === 'throw') throw new Error('on purpose')
    if (typeof status === 'number') throw new PredictionException('of my own', status)
    if (typeof header === 'string') context.setResponseHeader(0, 'x-own', header)
    if (kind === 'rows') return rows(request, this.batches)
    if (kind === 'halves') return { outputs: halves() }
    if (kind === 'decoded') return { outputs: request.inputs.map(decoded) }
    if (kind === 'wrong') return { outputs: [{ name: 'x', datatype: 'INT32', shape: [3], data: [1, 2] }] }
    const outputs = request.inputs.map(({ name, datatype, shape, data }) => ({ name, datatype, shape, data }))
    return { outputs, parameters: { id: request.id ?? 'none' } }
  }

  async *predictStream(
    payloads: AsyncIterable<InferenceRequest>,
    context: Context,
  ): AsyncIterable<InferenceResponse> {
    let words = 0
    const all: string[] = []
    try {
      for await (const payload of payloads) {
        const { pause = 0, fail, collect } = payload.parameters
        const text = StringCodec.decodeInput(payload.inputs[0]!).join(' ')
        if (collect === true) {
          all.push(text)
          continue
        }
        for (const word of text.split(/(?<= )/)) {
          if (word.trim() === fail) throw new PredictionException(`Failed at ${word.trim()}`, 418)
          yield { outputs: [StringCodec.encodeOutput('output', [word])], parameters: { words: (words += 1) } }
          await new Promise((resolve) => setTimeout(resolve, pause as number))
          if (context.signal.aborted) return
        }
      }
    } finally {
      // A generator may be ended at its `yield`, too.
      if (context.signal.aborted) console.log(`stopped after ${words}`)
    }
    if (all.length > 0) yield { outputs: [StringCodec.encodeOutput('output', [all.join('+')])] }
  }
}

/** Doubles each row, and tells how many came together. */
function rows({ inputs }: InferenceRequest, batches: number): InferenceResponse {
  const { shape, data } = ArrayCodec.decodeInput(inputs[0]!)
  const count = shape[0]!
  const doubled = Float64Array.from(data as Float64Array, (value) => value * 2)
  if (doubled.some(Number.isNaN)) throw new PredictionException('a row is NaN', 422)
  return {
    outputs: [
      { name: 'doubled', datatype: 'FP64', shape, data: doubled },
      {
        name: 'together',
        datatype: 'INT32',
        shape: [count],
        data: Array.from({ length: count }, () => count),
      },
      {
        name: 'call',
        datatype: 'BYTES',
        shape: [count],
        data: Array.from({ length: count }, () => `call ${batches}`),
      },
    ],
  }
}

function halves(): OutputTensor[] {
  return [
    { name: 'half', datatype: 'FP16', shape: [2], data: floatsToHalf([1.5, -2]) },
    { name: 'brain', datatype: 'BF16', shape: [2], data: floatsToBrain([1.5, -2]) },
  ]
}

function decoded(input: InputTensor): OutputTensor {
  const value = decodeInput(input)
  return StringCodec.encodeOutput(input.name, [
    JSON.stringify(value, (_key, each: unknown) => (typeof each === 'bigint' ? `${each}n` : each)),
  ])
}
