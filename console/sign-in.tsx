import type { JSX } from 'preact'

const focus = (input: HTMLInputElement | null): void => input?.focus()

/** Asks for a token. `reason`: why the one before was refused. */
export function SignIn({
  reason,
  onToken,
}: {
  reason: string | undefined
  onToken: (token: string) => void
}): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const token = new FormData(event.currentTarget as HTMLFormElement).get('token')
    if (typeof token === 'string' && token.trim() !== '') onToken(token.trim())
  }
  return (
    <main class="sign-in">
      <h1>Sign in</h1>
      <p>
        Use the management key of <code>key_file.json</code>, which the server writes to its working folder,
        or an API key with the scope <code>management</code>. The page keeps it until you close or reload it.
      </p>
      {reason !== undefined && (
        <p role="alert">
          The server refused this token: {reason}. A server that starts anew writes new keys to{' '}
          <code>key_file.json</code>, and its inference key is not for this page.
        </p>
      )}
      <form onSubmit={submit}>
        <label for="token">Token</label>
        <input id="token" name="token" type="password" autocomplete="off" required ref={focus} />
        <button type="submit">Sign in</button>
      </form>
    </main>
  )
}
