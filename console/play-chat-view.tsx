import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import { messagesOf } from './play-chat.ts'
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
    <li class={role === 'user' ? 'said by-user' : 'said'} aria-busy={isGrowing}>
      <small>{role}</small>
      <p>
        {text}
        {isGrowing && ' …'}
      </p>
    </li>
  )
}
