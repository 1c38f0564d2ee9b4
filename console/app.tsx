import { Component, type ComponentChildren, type JSX } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { Api } from './api.ts'
import { ConfigurationView } from './configuration-view.tsx'
import { timeOfDay } from './format.ts'
import { problemsOf, watchedModels } from './health.ts'
import { Doc } from './links.tsx'
import { LogView } from './log-view.tsx'
import { Overview } from './overview.tsx'
import { PlaygroundView } from './playground-view.tsx'
import { RequestsView } from './requests-view.tsx'
import { ServerState } from './server-state.ts'
import { SignIn, SignInAgain } from './sign-in.tsx'

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

export function App(): JSX.Element {
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
          <p class="note">This is how it was at {timeOfDay(overview.at)}, before the connection was lost.</p>
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
