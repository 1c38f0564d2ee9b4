import type {
  ChatCompletionRequest,
  EmbeddingsRequest,
  InferenceRequest,
  InferenceResponse,
} from 'torchserve-ts'

/**
 * Answers a tensor of the parameters `datatype` and `bytes`, whatever it gets: its bytes are 0.1 in 64 bits,
 * so that every datatype has numbers that take long to write. Without them, how many elements it got.
 */
export class Large {
  predict({ inputs, parameters }: InferenceRequest): InferenceResponse {
    const { datatype, bytes, size } = parameters
    if (typeof datatype !== 'string') {
      const data = inputs.map((input) => input.data.length)
      return { outputs: [{ name: 'lengths', datatype: 'INT32', shape: [data.length], data }] }
    }
    const filling = datatype === 'BYTES' ? new Float64Array(1) : new Float64Array([0.1])
    const data = Buffer.alloc(Number(bytes), Buffer.from(filling.buffer))
    const shape = [Number(bytes) / Number(size)]
    if (datatype === 'BYTES') {
      const texts = Array.from({ length: shape[0]! }, () => '')
      return { outputs: [{ name: 'y', datatype, shape, data: texts }] }
    }
    return { outputs: [{ name: 'y', datatype: datatype as 'FP64', shape, data }] }
  }

  chatCompletions(request: ChatCompletionRequest): object {
    const content = String(Object.keys(request).length)
    return { choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }] }
  }

  embeddings({ input }: EmbeddingsRequest): object {
    return { embeddings: [[input.length]] }
  }
}
