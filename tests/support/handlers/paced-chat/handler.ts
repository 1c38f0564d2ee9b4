import type { ChatChunk, ChatCompletionRequest, Context } from 'torchserve-ts'
import { PacedNative } from '../paced-native/handler.ts'

/** Sends items when told to (pace.ts): a handler with only `chatCompletions`. */
export class PacedChat {
  readonly #native = new PacedNative()

  chatCompletions(request: ChatCompletionRequest, context: Context): AsyncGenerator<ChatChunk> {
    return this.#native.chatCompletions(request, context)
  }
}
