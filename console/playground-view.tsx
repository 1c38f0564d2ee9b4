import type { JSX } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { DeclaredTensor } from '../common/curl-lines.ts'
import type { ModelOverview, OverviewEvent } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import type { Api } from './api.ts'
import { PLAY_APIS, type PlayApi, type PlayModel } from './play-apis.ts'
import { nextTurn } from './play-chat.ts'
import { ChatView } from './play-chat-view.tsx'
import { type CopiedRequest, reachable } from './play-copies.ts'
import { CopyAs } from './play-copy-view.tsx'
import { PlayRun } from './play-run.ts'
import { RunView } from './play-run-view.tsx'

/** What the form holds. */
interface Draft {
  readonly model: PlayModel
  readonly api: PlayApi
  readonly body: string
  readonly file: File | undefined
  /** Empty: the one that the user signed in with. */
  readonly token: string
}

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
      return api.infer(draft.api.path(draft.model), request, draft.token === '' ? undefined : draft.token)
    })
  }
  const isChat = draft.api.id === 'chat' && chat?.model === draft.model.name
  const say = (text: string): void => {
    const body = chat && nextTurn(chat.body, chat.run.answer, text)
    if (body === undefined) return
    form.set({ body })
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
      {isChat && <ChatView {...chat} onSay={say} />}
      {run !== undefined && <RunView run={run} before={before} />}
    </>
  )
}

interface DraftState {
  readonly draft: Draft
  set(fields: Partial<Draft>): void
}

/** Undefined: there is no model. What was written for a model and an API comes back with them. */
function useDraft(overview: OverviewEvent | undefined, api: Api): DraftState | undefined {
  const [chosen, setChosen] = useState({ key: '', apiId: 'torchserve', token: '' })
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
    set: (fields) => {
      if (fields.body !== undefined) setBodies(new Map(bodies).set(place, fields.body))
      if ('file' in fields) setFile(fields.file)
      const key = fields.model === undefined ? keyOf(model) : keyOfAsked(fields.model, models)
      const apiId = fields.api?.id ?? spokenApi.id
      setChosen({ key, apiId, token: fields.token ?? chosen.token })
    },
  }
}

/** The inputs that a model declares; empty until they are known. */
function useInputs(name: string | undefined, api: Api, token: string): readonly DeclaredTensor[] {
  const [known, setKnown] = useState<{ name: string; inputs: readonly DeclaredTensor[] }>()
  useEffect(() => {
    if (name === undefined) return
    let isCurrent = true
    const read = async (): Promise<void> => {
      const path = `/v2/models/${encodeURIComponent(name)}`
      const answer = await api.infer(path, { method: 'GET' }, token === '' ? undefined : token)
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
  const { draft, set } = form
  const { models } = overview
  const key = keyOfAsked(draft.model, models)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    onSend()
  }
  return (
    <form onSubmit={submit} aria-label="Request">
      <p class="bar">
        <label for="model">Model</label>
        <select
          id="model"
          value={key}
          onChange={(event) => set({ model: askedOf(models, event.currentTarget.value) })}
        >
          {models.map((model) => (
            <option value={keyOf(model)}>{titleOf(model)}</option>
          ))}
        </select>
        <label for="api">API</label>
        <select
          id="api"
          value={draft.api.id}
          onChange={(event) => set({ api: PLAY_APIS.find(({ id }) => id === event.currentTarget.value)! })}
        >
          {apisOf(draft.model).map(({ id, title }) => (
            <option value={id}>{title}</option>
          ))}
        </select>
        <label for="play-token">Inference token</label>
        <input
          id="play-token"
          type="password"
          autocomplete="off"
          placeholder="as signed in"
          value={draft.token}
          onInput={(event) => set({ token: event.currentTarget.value.trim() })}
        />
      </p>
      <Body draft={draft} set={set} />
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

function Body({ draft, set }: DraftState): JSX.Element {
  const picker = useRef<HTMLInputElement>(null)
  const drop = (event: DragEvent): void => {
    const file = event.dataTransfer?.files[0]
    if (file === undefined || draft.api.takesFiles !== true) return
    event.preventDefault()
    set({ file })
  }
  const leaveFile = (): void => {
    if (picker.current !== null) picker.current.value = ''
    set({ file: undefined })
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
        onInput={(event) => set({ body: event.currentTarget.value })}
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
      />
      {draft.api.takesFiles === true && (
        <p class="bar">
          <label for="file">File instead, also dropped on the text</label>
          <input
            id="file"
            type="file"
            ref={picker}
            onChange={(event) => set({ file: event.currentTarget.files?.[0] })}
          />
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

function askedOf(models: readonly ModelOverview[], key: string): PlayModel {
  const model = models.find((each) => keyOf(each) === key)!
  return { name: model.modelName, version: model.isDefault ? undefined : model.modelVersion, inputs: [] }
}

function keyOfAsked({ name, version }: PlayModel, models: readonly ModelOverview[]): string {
  const model = models.find(
    (each) =>
      each.modelName === name && (version === undefined ? each.isDefault : each.modelVersion === version),
  )
  return model === undefined ? '' : keyOf(model)
}

function apisOf({ version }: PlayModel): readonly PlayApi[] {
  return version === undefined ? PLAY_APIS : PLAY_APIS.filter(({ takesVersions }) => takesVersions === true)
}

function typeOf({ api, file }: Draft): string {
  return file === undefined ? api.contentType : 'application/octet-stream'
}

function bodyOf({ body, file }: Draft): BodyInit {
  return file ?? body
}

function copied(draft: Draft, { server }: OverviewEvent, hasToken: boolean): CopiedRequest {
  const address = server.listening.find(({ name }) => /^Inference.*REST/.test(name))?.address
  const base = address === undefined || !address.startsWith('http') ? location.origin : reachable(address)
  return {
    url: `${base}${draft.api.path(draft.model)}`,
    contentType: typeOf(draft),
    body: draft.file === undefined ? draft.body : { file: draft.file.name },
    needsToken: hasToken || draft.token !== '',
  }
}
