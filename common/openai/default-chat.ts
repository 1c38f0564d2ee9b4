import type { ChatMessage } from './types.ts'
import { ownValue } from '../own-keys.ts'

const NAMES: Readonly<Record<string, string>> = {
  system: 'System',
  developer: 'System',
  user: 'User',
  assistant: 'Assistant',
  tool: 'Tool',
  function: 'Tool',
}

/** Where an answer to the default template ends: the model begins to speak for somebody else. */
export const DEFAULT_CHAT_STOPS: readonly string[] = ['\nUser:', '\nSystem:', '\nTool:', '\nAssistant:']

/**
 * A chat as one prompt, for models that bring no template (docs/openai.md): `System: ...`, `User: ...`, `Assistant: ...`, one message
 * after the other on lines of their own, and `Assistant:` at the end for the model to go on.
 */
export function defaultChatPrompt(messages: readonly ChatMessage[]): string {
  const lines = messages.map((message) => `${ownValue(NAMES, message.role) ?? 'User'}: ${spoken(message)}`)
  return `${lines.join('\n')}\nAssistant:`
}

function spoken(message: ChatMessage): string {
  const text = messageText(message)
  const calls = message.tool_calls?.map(({ function: { name, arguments: values } }) => `${name}(${values})`)
  return [text, ...(calls ?? [])].filter((piece) => piece !== '').join('\n')
}

/** Where messages hold what is no text (images, audio, files): `messages[0].content[1]`; undefined: nowhere. */
export function otherThanText(messages: readonly ChatMessage[]): string | undefined {
  for (const [i, { content }] of messages.entries()) {
    const at = Array.isArray(content) ? content.findIndex(({ type }) => !TEXT_PARTS.has(type)) : -1
    if (at >= 0) return `messages[${i}].content[${at}]`
  }
  return undefined
}

/** An assistant's refusal says nothing to go on from, but is no reason to refuse. */
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal'])

/** The text of a message; what is no text (images, audio) is left out. */
export function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).map((part) => (part.type === 'text' ? (part.text ?? '') : '')).join('')
}
