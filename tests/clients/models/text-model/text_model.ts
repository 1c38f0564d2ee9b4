import { setTimeout as sleep } from 'node:timers/promises'
import { type InferenceRequest, type InferenceResponse, StringCodec } from 'torchserve-ts'

/** The model of MLServer's documentation of streams ("Streaming support"): says the words one by one. */
export class TextModel {
  async *predictStream(payloads: AsyncIterable<InferenceRequest>): AsyncGenerator<InferenceResponse> {
    for await (const { inputs } of payloads) {
      const [text] = StringCodec.decodeInput(inputs[0]!)
      for (const word of text!.split(/(?= )/)) {
        await sleep(60)
        yield { outputs: [StringCodec.encodeOutput('output', [word])] }
      }
      return
    }
  }
}
