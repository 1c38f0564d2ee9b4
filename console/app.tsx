import type { JSX } from 'preact'
import { useEffect, useReducer, useState } from 'preact/hooks'
import { Api } from './api.ts'
import { ApiView } from './api-view.tsx'
import { ArchiveUpload } from './archive-upload.ts'
import { ConfigurationView } from './configuration-view.tsx'
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
  upload: ArchiveUpload
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
  const [token, setToken] = useState<string>()
  const [, redraw] = useReducer((count: number) => count + 1, 0)
  const [session, setSession] = useState<ViewProps & { token: string | undefined }>()
  const view = useView()
  useEffect(() => {
    const changed = (): void => redraw(undefined)
    const state = new ServerState(changed)
    const api = new Api(token)
    const upload = new ArchiveUpload(api, changed)
    setSession({ state, api, upload, token })
    void state.follow(api)
    return () => {
      state.close()
      upload.stop()
    }
  }, [token])
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
    return <SignIn reason={session.token === undefined ? undefined : link.reason} onToken={setToken} />
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
        {session.token !== undefined && (
          <button type="button" onClick={() => setToken(undefined)}>
            Sign out
          </button>
        )}
      </header>
      <main>
        <h1>{view.title}</h1>
        <view.show {...session} />
      </main>
    </>
  )
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
