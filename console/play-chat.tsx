import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { PlayRun } from './play-run.ts'

/** A chat request with its answer as it grows, and the next message to send. */
export function ChatView({
  body,
  run,
  onSay,
}: {
  /** Of the request that the run sent. */
  body: string
  run: PlayRun
  onSay: (text: string) => void
}): JSX.Element {
  const [text, setText] = useState('')
  const isAnswered = run.answer !== '' && !run.isRefused
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    onSay(text)
    setText('')
  }
  return (
    <section aria-label="Chat">
      <ol class="chat">
        {messagesOf(body).map((message, index) => (
          <Message key={index} role={message.role} text={message.text} isGrowing={false} />
        ))}
        {(run.isOpen || isAnswered) && (
          <Message key="answer" role="assistant" text={run.answer} isGrowing={run.isOpen} />
        )}
      </ol>
      <form class="bar" onSubmit={submit}>
        <label for="say">Next message</label>
        <input
          id="say"
          class="say"
          autocomplete="off"
          required
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <button type="submit" disabled={run.isOpen || !isAnswered}>
          Send the next message
        </button>
      </form>
    </section>
  )
}

function Message(props: { role: string; text: string; isGrowing: boolean }): JSX.Element {
  const { role, text, isGrowing } = props
  return (
    <li class={role === 'user' ? 'turn by-user' : 'turn'} aria-busy={isGrowing}>
      <small>{role}</small>
      <p>
        {text}
        {isGrowing && ' …'}
      </p>
    </li>
  )
}

/** A message of an OpenAI chat, as text. */
interface ChatMessage {
  readonly role: string
  readonly text: string
}

/** The messages of the body of a chat request; empty: the body is none. */
function messagesOf(body: string): readonly ChatMessage[] {
  const messages = chatOf(body)?.messages
  return Array.isArray(messages) ? messages.map(messageOf) : []
}

/**
 * The body of the next turn: with the answer, and what the user says to it.
 * @param body of the turn before; undefined is returned where it is no chat request
 */
export function nextTurn(body: string, answer: string, next: string): string | undefined {
  const chat = chatOf(body)
  if (chat === undefined) return undefined
  const before: unknown[] = Array.isArray(chat.messages) ? chat.messages : []
  const turns = [
    { role: 'assistant', content: answer },
    { role: 'user', content: next },
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
