import type { JSX } from 'preact'
import { useEffect, useRef } from 'preact/hooks'

const focus = (input: HTMLInputElement | null): void => input?.focus()

interface SignInProps {
  /** Why the key before was refused; undefined: there was none. */
  readonly reason: string | undefined
  readonly onToken: (token: string) => void
}

/** Asks for a key. */
export function SignIn(props: SignInProps): JSX.Element {
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      <p>
        Paste the management key of <code>key_file.json</code>, which the server writes to its working folder,
        or an API key with the scope <code>management</code>. The page keeps it until you close or reload it.
      </p>
      <KeyForm {...props} />
    </main>
  )
}

/** Asks for a key above the page, which keeps what was typed. `had`: whether there was a key before. */
export function SignInAgain({ had, ...props }: SignInProps & { had: boolean }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current!.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="again" onCancel={(event) => event.preventDefault()}>
      <h2 id="again">{had ? 'Your key has ended' : 'The server now requires a key'}</h2>
      <p>Sign in to go on: the page keeps what you typed.</p>
      <KeyForm {...props} />
      <p>
        <a href="/console">Leave instead</a>, and forget the page.
      </p>
    </dialog>
  )
}

function KeyForm({ reason, onToken }: SignInProps): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const token = new FormData(event.currentTarget as HTMLFormElement).get('token')
    if (typeof token === 'string' && token.trim() !== '') onToken(token.trim())
  }
  return (
    <>
      {reason !== undefined && (
        <p role="alert">
          The server refused this key: {reason}. A restarted server writes new keys to{' '}
          <code>key_file.json</code>. The inference key does not open this page.
        </p>
      )}
      <form onSubmit={submit}>
        <label for="token">Key</label>
        <input id="token" name="token" type="password" autocomplete="off" required ref={focus} />
        <button type="submit" class="primary">
          Sign in
        </button>
      </form>
    </>
  )
}
