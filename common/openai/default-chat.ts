import type { ChatMessage } from './types.ts'
import { ownValue } from '../json.ts'

const NAMES: Readonly<Record<string, string>> = {
  system: 'System',
  developer: 'System',
  user: 'User',
  assistant: 'Assistant',
  tool: 'Tool',
  function: 'Tool',
}

/** Stop texts of the default template: the model starts to write the next speaker's message. */
export const DEFAULT_CHAT_STOPS: readonly string[] = ['\nUser:', '\nSystem:', '\nTool:', '\nAssistant:']

/**
 * Formats a chat as one prompt, for models without a template (docs/openai.md). Each message is a line
 * `System: ...`, `User: ...` or `Assistant: ...`; a final `Assistant:` asks the model to continue.
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

/**
 * The path of the first message part that is not text (image, audio, file), such as `messages[0].content[1]`;
 * undefined if all parts are text.
 */
export function otherThanText(messages: readonly ChatMessage[]): string | undefined {
  for (const [i, { content }] of messages.entries()) {
    const at = Array.isArray(content) ? content.findIndex(({ type }) => !TEXT_PARTS.has(type)) : -1
    if (at >= 0) return `messages[${i}].content[${at}]`
  }
  return undefined
}

/** A refusal of the assistant adds nothing to the prompt, but is valid input. */
const TEXT_PARTS: ReadonlySet<string> = new Set(['text', 'refusal'])

/** The text of a message, a line for each part; other parts (images, audio) are left out. */
export function messageText({ content }: ChatMessage): string {
  if (typeof content === 'string') return content
  return (content ?? []).flatMap(({ type, text = '' }) => (type === 'text' ? [text] : [])).join('\n')
}
