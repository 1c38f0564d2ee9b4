import type { ChatChunk, ChatCompletionRequest, ChatMessage, Context } from 'torchserve-ts'
import GgufHandler from 'torchserve-ts/gguf'

const SYSTEM: ChatMessage = { role: 'system', content: 'Answer in one short sentence.' }

/** The messages of a client, with the system message of this server if they have none. */
export function withSystem(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.some(({ role }) => role === 'system') ? [...messages] : [SYSTEM, ...messages]
}

/** Chats with the .gguf file of this folder, through the OpenAI API. */
export default class Chat extends GgufHandler {
  override chatCompletions(request: ChatCompletionRequest, context: Context): AsyncIterable<ChatChunk> {
    return super.chatCompletions({ ...request, messages: withSystem(request.messages) }, context)
  }
}
