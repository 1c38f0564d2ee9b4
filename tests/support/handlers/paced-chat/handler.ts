import type { ChatChunk, ChatCompletionRequest, Context } from 'torchserve-ts'
import { PacedNative } from '../paced-native/handler.ts'

/** Sends items when it is told to (pace.ts): a handler that only answers chats. */
export class PacedChat {
  readonly #native = new PacedNative()

  chatCompletions(request: ChatCompletionRequest, context: Context): AsyncGenerator<ChatChunk> {
    return this.#native.chatCompletions(request, context)
  }
}
