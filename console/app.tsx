import { Component, type ComponentChildren, type JSX, render } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { Api } from './api.ts'
import { ConfigurationView } from './configuration-view.tsx'
import { Doc } from './elements.tsx'
import { timeOfDay } from './format.ts'
import { problemsOf, watchedModels } from './health.ts'
import { LogView } from './log-view.tsx'
import { Overview } from './overview.tsx'
import { PlaygroundView } from './playground-view.tsx'
import { RequestsView } from './requests-view.tsx'
import { ServerState } from './server-state.ts'

/** What every view gets. */
export interface ViewProps {
  state: ServerState
  api: Api
  /** What the address names after the view: `#log?model=words 1.0`. */
  params: URLSearchParams
}

interface View {
  readonly path: string
  readonly title: string
  readonly show: (props: ViewProps) => JSX.Element
}

const VIEWS: readonly [View, ...View[]] = [
  { path: '', title: 'Models', show: Overview },
  { path: 'requests', title: 'Requests', show: RequestsView },
  { path: 'playground', title: 'Playground', show: PlaygroundView },
  { path: 'log', title: 'Log', show: LogView },
  { path: 'configuration', title: 'Configuration', show: ConfigurationView },
]

/** One user at the page: it lasts until the user signs out, over keys that expire. */
interface Session {
  readonly state: ServerState
  readonly api: Api
}

function App(): JSX.Element {
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const newSession = (): Session => ({
    state: new ServerState(() => redraw(undefined)),
    api: new Api(undefined),
  })
  const [{ state, api }, setSession] = useState(newSession)
  const { view, params } = useView()
  useEffect(() => {
    void state.follow(api)
  }, [state, api])
  useEffect(() => () => state.close(), [state])
  useEffect(() => {
    document.title = `${view.title} · torchserve-ts console`
  }, [view])

  const { link, overview } = state
  const signIn = (token: string): void => setSession({ state, api: new Api(token) })
  if (overview === undefined && link.state === 'connecting') {
    return (
      <main>
        <h1>torchserve-ts</h1>
        <p class="note">Connecting …</p>
      </main>
    )
  }
  const reason = link.state === 'refused' && api.hasToken ? link.reason : undefined
  if (overview === undefined && link.state === 'refused') return <SignIn reason={reason} onToken={signIn} />
  return (
    <>
      <header>
        <strong>torchserve-ts</strong>
        <nav aria-label="Views">
          {VIEWS.map((each) => (
            <a href={`#${each.path}`} aria-current={each === view ? 'page' : undefined}>
              {each.title}
            </a>
          ))}
          <Doc>Docs</Doc>
        </nav>
        <LinkState state={state} />
        {api.hasToken && (
          <button type="button" onClick={() => setSession(newSession())}>
            Sign out
          </button>
        )}
      </header>
      <main>
        <h1 class="unseen">{view.title}</h1>
        {link.state === 'lost' && overview !== undefined && (
          <p class="note">The connection is lost. The page shows the state at {timeOfDay(overview.at)}.</p>
        )}
        <Views key={state} current={view} state={state} api={api} params={params} />
      </main>
      {link.state === 'refused' && <SignInAgain had={api.hasToken} reason={reason} onToken={signIn} />}
    </>
  )
}

/**
 * The views that were opened. One stays as it is while others are shown: what was written, and what runs. The
 * events redraw the shown one alone.
 */
function Views({ current, ...props }: ViewProps & { current: View }): JSX.Element {
  const opened = useRef(new Set<View>())
  opened.current.add(current)
  return (
    <>
      {VIEWS.filter((each) => opened.current.has(each)).map((each) => (
        <div key={each.path} hidden={each !== current}>
          <Redrawn if={each === current}>
            <each.show {...props} />
          </Redrawn>
        </div>
      ))}
    </>
  )
}

class Redrawn extends Component<{ if: boolean; children: ComponentChildren }> {
  override shouldComponentUpdate(next: { if: boolean }): boolean {
    return next.if
  }

  override render(): ComponentChildren {
    return this.props.children
  }
}

/** Whether the page is connected, and how many models have a problem. */
function LinkState({ state: { link, overview, history } }: { state: ServerState }): JSX.Element {
  const problems = overview === undefined ? 0 : problemsOf(overview, watchedModels(overview, history)).length
  const text = {
    connecting: 'connecting …',
    live: 'live',
    lost: `connection lost, trying again: ${'reason' in link ? link.reason : ''}`,
    refused: 'signed out',
  }[link.state]
  return (
    <span class="right">
      {problems > 0 && (
        <a href="#" class="state bad">
          {problems} {problems === 1 ? 'problem' : 'problems'}
        </a>
      )}
      <span role="status" class={`link ${link.state}`}>
        {text}
      </span>
    </span>
  )
}

/** The view that the address names, and what else it names. */
function useView(): { view: View; params: URLSearchParams } {
  const named = (): { view: View; params: URLSearchParams } => {
    const [path, query] = location.hash.slice(1).split('?')
    return { view: VIEWS.find((each) => each.path === path) ?? VIEWS[0], params: new URLSearchParams(query) }
  }
  const [view, setView] = useState(named)
  useEffect(() => {
    const changed = (): void => setView(named())
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return view
}

const focus = (input: HTMLInputElement | null): void => input?.focus()

interface SignInProps {
  /** Why the key before was refused; undefined: there was none. */
  readonly reason: string | undefined
  readonly onToken: (token: string) => void
}

/** Asks for a key. */
function SignIn(props: SignInProps): JSX.Element {
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
function SignInAgain({ had, ...props }: SignInProps & { had: boolean }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current!.showModal(), [])
  return (
    <dialog ref={dialog} aria-labelledby="again" onCancel={(event) => event.preventDefault()}>
      <h2 id="again">{had ? 'Your key has ended' : 'The server now requires a key'}</h2>
      <p>Sign in to go on: the page keeps what you typed.</p>
      <KeyForm {...props} />
      <p>
        <a href="/console">Discard the page</a>
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

render(<App />, document.getElementById('console')!)
