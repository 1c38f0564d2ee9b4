/** A message of an OpenAI chat, as text. */
export interface ChatMessage {
  readonly role: string
  readonly text: string
}

/** The messages of the body of a chat request; empty: the body is none. */
export function messagesOf(body: string): readonly ChatMessage[] {
  const messages = chatOf(body)?.messages
  return Array.isArray(messages) ? messages.map(messageOf) : []
}

/**
 * The body of the next turn: with the answer, and what the user says to it.
 * @param body of the turn before; undefined is returned where it is no chat request
 */
export function nextTurn(body: string, answer: string, said: string): string | undefined {
  const chat = chatOf(body)
  if (chat === undefined) return undefined
  const before: unknown[] = Array.isArray(chat.messages) ? chat.messages : []
  const turns = [
    { role: 'assistant', content: answer },
    { role: 'user', content: said },
  ]
  return JSON.stringify({ ...chat, messages: [...before, ...turns] }, null, 2)
}

function chatOf(body: string): { readonly messages?: unknown } | undefined {
  try {
    const chat: unknown = JSON.parse(body)
    return typeof chat === 'object' && chat !== null ? chat : undefined
  } catch {
    return undefined
  }
}

/** Content is a text, or parts of which some are text. The rest is shown as the JSON that it is. */
function messageOf(message: unknown): ChatMessage {
  const { role, content } = (message ?? {}) as { role?: unknown; content?: unknown }
  const parts: unknown[] = Array.isArray(content) ? content : [content]
  return { role: typeof role === 'string' ? role : '–', text: parts.map(partText).join('\n') }
}

function partText(part: unknown): string {
  if (typeof part === 'string') return part
  const { text } = (part ?? {}) as { text?: unknown }
  return typeof text === 'string' ? text : (JSON.stringify(part) ?? '')
}
