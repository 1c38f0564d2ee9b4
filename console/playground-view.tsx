import type { JSX } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { DeclaredTensor } from '../common/curl-lines.ts'
import type { ModelOverview, OverviewEvent } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import type { Api } from './api.ts'
import { PLAY_APIS, type PlayApi, type PlayModel } from './play-apis.ts'
import { nextTurn } from './play-chat.ts'
import { ChatView } from './play-chat-view.tsx'
import { CopyAs } from './play-copy-view.tsx'
import { bodyOf, copied, type Draft, typeOf } from './play-draft.ts'
import { PlayRun } from './play-run.ts'
import { RunView } from './play-run-view.tsx'

/** Sends a request to a model, and shows the answer piece by piece. */
export function PlaygroundView({ state, api }: ViewProps): JSX.Element {
  const [runs, setRuns] = useState<readonly PlayRun[]>([])
  const [chat, setChat] = useState<{ run: PlayRun; body: string; model: string }>()
  const redraw = useRedraw()
  const [run, before] = runs
  useEffect(() => () => run?.stop(), [run])
  const form = useDraft(state.overview, api)
  if (state.overview === undefined) return <p class="note">Waiting for the server …</p>
  if (form === undefined) return <p class="note">No model is registered.</p>
  const { draft } = form
  const send = (body = draft.body): void => {
    const title = `${draft.model.name} ${draft.model.version ?? ''}`.trim()
    const next = new PlayRun(`${title}, ${draft.api.title}`, draft.api.textOf, redraw)
    setRuns([next, ...runs.slice(0, 1)])
    setChat(draft.api.id === 'chat' ? { run: next, body, model: draft.model.name } : undefined)
    void next.run((signal) => {
      const request = {
        method: 'POST',
        headers: { 'content-type': typeOf(draft) },
        body: bodyOf({ ...draft, body }),
        signal,
      }
      return api.infer(draft.api.path(draft.model), request, draft.token)
    })
  }
  const isChat = draft.api.id === 'chat' && chat?.model === draft.model.name
  const say = (text: string): void => {
    const body = chat && nextTurn(chat.body, chat.run.answer, text)
    if (body === undefined) return
    form.write(body)
    send(body)
  }
  return (
    <>
      <DraftForm
        overview={state.overview}
        form={form}
        busy={run?.isOpen === true}
        onSend={() => send()}
        run={run}
      />
      <CopyAs request={copied(draft, state.overview, api.hasToken)} />
      {run?.isUnauthorized === true && api.hasToken && draft.token === undefined && (
        <p class="note">
          The token that you signed in with is not for inference. Give the inference key of{' '}
          <code>key_file.json</code>, or an API key with the scope <code>inference</code>, as inference token
          above.
        </p>
      )}
      {isChat && <ChatView {...chat} onSay={say} />}
      {run !== undefined && <RunView run={run} before={before} />}
    </>
  )
}

/** What the user chooses: a model by its key, an API by its id. */
interface Chosen {
  readonly key: string
  readonly apiId: string
  readonly token: string | undefined
}

interface DraftState {
  readonly draft: Draft
  /** Of the model. */
  readonly key: string
  choose(fields: Partial<Chosen>): void
  write(body: string): void
  take(file: File | undefined): void
}

/** Undefined: there is no model. What was written for a model and an API comes back with them. */
function useDraft(overview: OverviewEvent | undefined, api: Api): DraftState | undefined {
  const [chosen, setChosen] = useState<Chosen>({ key: '', apiId: 'torchserve', token: undefined })
  const [bodies, setBodies] = useState<ReadonlyMap<string, string>>(new Map())
  const [file, setFile] = useState<File>()
  const models = overview?.models ?? []
  const model = models.find((each) => keyOf(each) === chosen.key) ?? models[0]
  const inputs = useInputs(model?.modelName, api, chosen.token)
  if (model === undefined) return undefined
  const asked: PlayModel = {
    name: model.modelName,
    version: model.isDefault ? undefined : model.modelVersion,
    inputs,
  }
  const spoken = apisOf(asked)
  const spokenApi = spoken.find(({ id }) => id === chosen.apiId) ?? spoken[0]!
  // What the user works on stays, also when another model comes first by now.
  const choose = (fields: Partial<Chosen>): void => setChosen({ ...chosen, key: keyOf(model), ...fields })
  const place = `${keyOf(model)} ${spokenApi.id}`
  const body = bodies.get(place) ?? spokenApi.example(asked)
  return {
    draft: {
      model: asked,
      api: spokenApi,
      body,
      file: spokenApi.takesFiles === true ? file : undefined,
      token: chosen.token,
    },
    key: keyOf(model),
    choose,
    write: (text) => {
      setBodies(new Map(bodies).set(place, text))
      choose({})
    },
    take: (taken) => {
      setFile(taken)
      choose({})
    },
  }
}

/** The inputs that a model declares; empty until they are known. */
function useInputs(name: string | undefined, api: Api, token: string | undefined): readonly DeclaredTensor[] {
  const [known, setKnown] = useState<{ name: string; inputs: readonly DeclaredTensor[] }>()
  useEffect(() => {
    if (name === undefined) return
    let isCurrent = true
    const read = async (): Promise<void> => {
      const path = `/v2/models/${encodeURIComponent(name)}`
      const answer = await api.infer(path, { method: 'GET' }, token)
      const { inputs } = (await answer.json()) as { inputs?: readonly DeclaredTensor[] }
      if (isCurrent && answer.ok) setKnown({ name, inputs: inputs ?? [] })
    }
    read().catch(() => undefined) // the example has another input then
    return () => {
      isCurrent = false
    }
  }, [name, api, token])
  return known !== undefined && known.name === name ? known.inputs : []
}

function DraftForm(props: {
  overview: OverviewEvent
  form: DraftState
  busy: boolean
  run: PlayRun | undefined
  onSend: () => void
}): JSX.Element {
  const { overview, form, busy, run, onSend } = props
  const { draft, key, choose } = form
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    onSend()
  }
  return (
    <form onSubmit={submit} aria-label="Request">
      <p class="bar">
        <span class="field">
          <label for="model">Model</label>
          <select id="model" value={key} onChange={(event) => choose({ key: event.currentTarget.value })}>
            {overview.models.map((model) => (
              <option value={keyOf(model)}>{titleOf(model)}</option>
            ))}
          </select>
        </span>
        <span class="field">
          <label for="api">API</label>
          <select
            id="api"
            value={draft.api.id}
            onChange={(event) => choose({ apiId: event.currentTarget.value })}
          >
            {apisOf(draft.model).map(({ id, title }) => (
              <option value={id}>{title}</option>
            ))}
          </select>
        </span>
        <span class="field">
          <label for="play-token">Inference token</label>
          <input
            id="play-token"
            type="password"
            autocomplete="off"
            placeholder="as signed in"
            value={draft.token ?? ''}
            onInput={(event) => choose({ token: event.currentTarget.value.trim() || undefined })}
          />
        </span>
      </p>
      <Body {...form} />
      <p class="bar">
        <button type="submit" disabled={busy}>
          Send
        </button>
        <button type="button" disabled={!busy} onClick={() => run?.stop()}>
          Stop
        </button>
      </p>
    </form>
  )
}

function Body({ draft, write, take }: DraftState): JSX.Element {
  const picker = useRef<HTMLInputElement>(null)
  const drop = (event: DragEvent): void => {
    const file = event.dataTransfer?.files[0]
    if (file === undefined || draft.api.takesFiles !== true) return
    event.preventDefault()
    take(file)
  }
  const leaveFile = (): void => {
    if (picker.current !== null) picker.current.value = ''
    take(undefined)
  }
  return (
    <>
      <label for="body">Body</label>
      <textarea
        id="body"
        rows={8}
        spellcheck={false}
        disabled={draft.file !== undefined}
        value={draft.body}
        onInput={(event) => write(event.currentTarget.value)}
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
      />
      {draft.api.takesFiles === true && (
        <p class="bar">
          <span class="field">
            <label for="file">File instead, also dropped on the text</label>
            <input
              id="file"
              type="file"
              ref={picker}
              onChange={(event) => take(event.currentTarget.files?.[0])}
            />
          </span>
          {draft.file !== undefined && (
            <>
              <span>{draft.file.name}</span>
              <button type="button" onClick={leaveFile}>
                Send the text
              </button>
            </>
          )}
        </p>
      )}
    </>
  )
}

/** At most once a frame, however many pieces arrive. */
function useRedraw(): () => void {
  const [, count] = useReducer((times: number) => times + 1, 0)
  const planned = useRef(false)
  return () => {
    if (planned.current) return
    planned.current = true
    requestAnimationFrame(() => {
      planned.current = false
      count(undefined)
    })
  }
}

function keyOf({ modelName, modelVersion }: ModelOverview): string {
  return `${modelName} ${modelVersion}`
}

function titleOf(model: ModelOverview): string {
  return model.isDefault ? model.modelName : `${model.modelName} ${model.modelVersion}`
}

function apisOf({ version }: PlayModel): readonly PlayApi[] {
  return version === undefined ? PLAY_APIS : PLAY_APIS.filter(({ takesVersions }) => takesVersions === true)
}
