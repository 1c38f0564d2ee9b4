import type { JSX } from 'preact'
import { useEffect, useReducer, useRef, useState } from 'preact/hooks'
import type { OverviewEvent } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { Choice, Doc, Field } from './elements.tsx'
import { healthOf } from './health.ts'
import { keyOf } from './history.ts'
import { copied, type DraftState, pathOf, takesFiles, textOf, typeOf, useDraft } from './play-draft.ts'
import { ChatView, nextTurn } from './play-chat.tsx'
import { CopyAs } from './play-copies.tsx'
import { PlayRun } from './play-run.ts'
import { RunView } from './play-run-view.tsx'

/** Sends a request to a model, and shows the answer beside it, piece by piece. */
export function PlaygroundView({ state, api, params }: ViewProps): JSX.Element {
  const [runs, setRuns] = useState<readonly PlayRun[]>([])
  const [chat, setChat] = useState<{ run: PlayRun; body: string; model: string }>()
  const redraw = useRedraw()
  const [run, before] = runs
  useEffect(() => () => run?.stop(), [run])
  const form = useDraft(state.overview, api, params.get('model'))
  if (state.overview === undefined) return <p class="note">Waiting for the server …</p>
  if (form === undefined)
    return (
      <p class="note">
        No model is registered. <a href="#">Register one</a>, then send it a request here.
      </p>
    )
  const { draft } = form
  const isChatApi = draft.api.id === 'chat/completions'
  const send = (body = draft.body): void => {
    const title = `${draft.model.name} ${draft.model.version ?? ''}`.trim()
    const next = new PlayRun(`${title}, ${draft.api.title}`, (piece) => textOf(draft.api, piece), redraw)
    setRuns([next, ...runs.slice(0, 1)])
    setChat(isChatApi ? { run: next, body, model: draft.model.name } : undefined)
    void next.run((signal) => {
      const headers = { 'content-type': typeOf(draft) }
      const request = { method: 'POST', headers, body: draft.file ?? body, signal }
      return api.infer(pathOf(draft.api, draft.model), request, draft.token)
    })
  }
  const say = (text: string): void => {
    const body = chat && nextTurn(chat.body, chat.run.answer, text)
    if (body === undefined) return
    form.write(body)
    send(body)
  }
  const isChat = isChatApi && chat?.model === draft.model.name
  const needsKey = form.needsKey || (run?.isUnauthorized === true && draft.token === undefined)
  return (
    <div class="panes">
      <section aria-label="What to send">
        <DraftForm
          overview={state.overview}
          form={form}
          run={run}
          askKey={needsKey || draft.token !== undefined}
          hasToken={api.hasToken}
          onSend={() => send()}
        />
        <CopyAs request={copied(draft, state.overview, api.hasToken)} />
      </section>
      <section aria-label="What comes back">
        {run === undefined && (
          <p class="note empty">
            Press Send: the answer appears here, piece by piece. The body is an example; change it to what the
            model expects. <Doc page="protocols.md">What each API takes</Doc>
          </p>
        )}
        {run !== undefined && (
          <RunView run={run} before={before} isChat={isChat}>
            {isChat && <ChatView {...chat} onSay={say} />}
          </RunView>
        )}
      </section>
    </div>
  )
}

function DraftForm(props: {
  overview: OverviewEvent
  form: DraftState
  run: PlayRun | undefined
  /** Whether a key of its own is asked for. */
  askKey: boolean
  hasToken: boolean
  onSend: () => void
}): JSX.Element {
  const { overview, form, run, askKey, hasToken, onSend } = props
  const { draft, model } = form
  const busy = run?.isOpen === true
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    onSend()
  }
  return (
    <form onSubmit={submit} aria-label="Request">
      <p class="bar">
        <Choice
          id="model"
          label="Model"
          value={keyOf(model)}
          options={overview.models.map((each) => [
            keyOf(each),
            each.isDefault ? each.modelName : keyOf(each),
          ])}
          onChoose={form.chooseModel}
        />
        <Choice
          id="api"
          label="API"
          value={draft.api.id}
          options={form.apis.map(({ id, title }) => [id, title])}
          onChoose={form.chooseApi}
        />
      </p>
      {model.state === 'failed' && (
        <p role="alert">This model failed to load: {healthOf(model, undefined).cause}</p>
      )}
      {askKey && (
        <div class="field key-field">
          <label for="play-token">Inference key</label>
          <input
            id="play-token"
            type="password"
            autocomplete="off"
            value={draft.token ?? ''}
            onInput={(event) => form.enterToken(event.currentTarget.value)}
          />
          <p class="note">
            {hasToken
              ? 'The key that you signed in with is not valid for inference'
              : 'This server requires a key for inference'}
            : paste the inference key of <code>key_file.json</code>. An{' '}
            <Doc page="authorization.md">API key with both scopes</Doc> works for both.
          </p>
        </div>
      )}
      <Body {...form} />
      <p class="bar">
        <button type="submit" class="primary" disabled={busy}>
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
    if (file === undefined || !takesFiles(draft.api)) return
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
        rows={12}
        spellcheck={false}
        disabled={draft.file !== undefined}
        value={draft.body}
        onInput={(event) => write(event.currentTarget.value)}
        onDragOver={(event) => event.preventDefault()}
        onDrop={drop}
      />
      {takesFiles(draft.api) && (
        <p class="bar">
          <Field id="file" label="Or send a file">
            <input
              id="file"
              type="file"
              ref={picker}
              onChange={(event) => take(event.currentTarget.files?.[0])}
            />
          </Field>
          {draft.file !== undefined && (
            <>
              <span>{draft.file.name}</span>
              <button type="button" onClick={leaveFile}>
                Send the text instead
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
