import {
  StringCodec,
  type ChatChunk,
  type ChatCompletionRequest,
  type CompletionChunk,
  type CompletionRequest,
  type Context,
  type InferenceRequest,
  type InferenceResponse,
} from 'torchserve-ts'
import { pace, planIn } from '../paced/pace.ts'

/**
 * Sends items when told to (pace.ts): a handler with methods of the Open Inference Protocol and the OpenAI
 * API.
 */
export class PacedNative {
  async *predictStream(
    payloads: AsyncIterable<InferenceRequest>,
    { signal }: Context,
  ): AsyncIterable<InferenceResponse> {
    for await (const { inputs } of payloads) {
      const [text] = StringCodec.decodeInput(inputs[0]!)
      for await (const item of pace(planIn(text!), signal))
        yield { outputs: [StringCodec.encodeOutput('output', [item])] }
    }
  }

  async *chatCompletions(
    { messages }: ChatCompletionRequest,
    { signal }: Context,
  ): AsyncGenerator<ChatChunk> {
    const plan = planIn(messages.at(-1)!.content as string)
    for await (const item of pace(plan, signal)) yield { choices: [{ index: 0, delta: { content: item } }] }
  }

  async *completions({ prompt }: CompletionRequest, { signal }: Context): AsyncGenerator<CompletionChunk> {
    for await (const text of pace(planIn(String(prompt)), signal)) yield { choices: [{ index: 0, text }] }
  }
}
