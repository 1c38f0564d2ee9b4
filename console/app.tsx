import { Component, type ComponentChildren, type JSX } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import { Api } from './api.ts'
import { ApiView } from './api-view.tsx'
import { ConfigurationView } from './configuration-view.tsx'
import { timeOfDay } from './format.ts'
import { LogView } from './log-view.tsx'
import { ModelsView } from './models-view.tsx'
import { Overview } from './overview.tsx'
import { PlaygroundView } from './playground-view.tsx'
import { RequestsView } from './requests-view.tsx'
import { type Link, ServerState } from './server-state.ts'
import { SignIn } from './sign-in.tsx'

/** What every view gets. */
export interface ViewProps {
  state: ServerState
  api: Api
}

/** What the user signed in with. Undefined: nothing. */
interface Credential {
  readonly token: string | undefined
}

interface View {
  readonly path: string
  readonly title: string
  readonly show: (props: ViewProps) => JSX.Element
}

const VIEWS: readonly [View, ...View[]] = [
  { path: '', title: 'Overview', show: Overview },
  { path: 'requests', title: 'Live requests', show: RequestsView },
  { path: 'playground', title: 'Playground', show: PlaygroundView },
  { path: 'models', title: 'Models', show: ModelsView },
  { path: 'log', title: 'Log', show: LogView },
  { path: 'configuration', title: 'Configuration', show: ConfigurationView },
  { path: 'api', title: 'API', show: ApiView },
]

export function App(): JSX.Element {
  // An object, so that the same token can be tried again.
  const [credential, setCredential] = useState<Credential>({ token: undefined })
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const [session, setSession] = useState<ViewProps & { credential: Credential }>()
  const view = useView()
  useEffect(() => {
    const state = new ServerState(() => redraw(undefined))
    const api = new Api(credential.token)
    setSession({ state, api, credential })
    void state.follow(api)
    return () => state.close()
  }, [credential])
  useEffect(() => {
    document.title = `${view.title} · torchserve-ts console`
  }, [view])

  if (session === undefined || isFirstTry(session.state)) {
    return (
      <main>
        <h1>torchserve-ts</h1>
        <p class="note">Connecting …</p>
      </main>
    )
  }
  const { link } = session.state
  if (link.state === 'refused') {
    const reason = session.api.hasToken ? link.reason : undefined
    return <SignIn reason={reason} onToken={(token) => setCredential({ token })} />
  }
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
        </nav>
        <LinkState link={link} />
        {session.api.hasToken && (
          <button type="button" onClick={() => setCredential({ token: undefined })}>
            Sign out
          </button>
        )}
      </header>
      <main>
        <h1>{view.title}</h1>
        {link.state === 'lost' && session.state.overview !== undefined && (
          <p class="note">
            This is how it was at {timeOfDay(session.state.overview.at)}, before the connection was lost.
          </p>
        )}
        <Views key={session.credential} current={view} {...session} />
      </main>
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

function isFirstTry({ link, overview }: ServerState): boolean {
  return link.state === 'connecting' && overview === undefined
}

function LinkState({ link }: { link: Link }): JSX.Element {
  const text = {
    connecting: 'connecting …',
    live: 'live',
    lost: `connection lost, trying again: ${'reason' in link ? link.reason : ''}`,
    refused: 'signed out',
  }[link.state]
  return (
    <span role="status" class={`link ${link.state}`}>
      {text}
    </span>
  )
}

/** The view that the address names. */
function useView(): View {
  const named = (): View => VIEWS.find(({ path }) => path === location.hash.slice(1)) ?? VIEWS[0]
  const [view, setView] = useState(named)
  useEffect(() => {
    const changed = (): void => setView(named())
    addEventListener('hashchange', changed)
    return () => removeEventListener('hashchange', changed)
  }, [])
  return view
}
