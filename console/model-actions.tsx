import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { FailedOverview, ModelOverview } from '../common/server-events.ts'
import { type Api, reasonOf } from './api.ts'
import { Ask, Doc, Field, type Question } from './elements.tsx'
import { count } from './format.ts'
import { keyOf } from './history.ts'

/** One management call, and what it is called on the page. */
interface Action {
  readonly what: string
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly path: string
}

/** The management calls of a view, one at a time. */
export interface Actions {
  readonly busy: boolean
  run(action: Action): void
  /** Runs it if the user agrees. */
  ask(text: string, action: Action): void
  /** What became of the last call, and the question that waits for its answer. */
  readonly message: JSX.Element
}

export function useActions(api: Api): Actions {
  const [question, setQuestion] = useState<Question>()
  const [outcome, setOutcome] = useState<{ readonly ok: boolean; readonly text: string }>()
  const [running, setRunning] = useState<string>()
  const run = async ({ what, method, path }: Action): Promise<void> => {
    setOutcome(undefined)
    setRunning(what)
    try {
      setOutcome({ ok: true, text: `${what}: ${await api.call(method, path)}` })
    } catch (error) {
      setOutcome({ ok: false, text: `${what}: ${reasonOf(error)}` })
    } finally {
      setRunning(undefined)
    }
  }
  return {
    busy: running !== undefined,
    run: (action) => void run(action),
    ask: (text, action) => setQuestion({ text, action: action.what, run: () => void run(action) }),
    message: (
      <>
        <p role="status" class="message">
          {running !== undefined && `${running} …`}
          {outcome?.ok === true && outcome.text}
        </p>
        {outcome?.ok === false && <p role="alert">{outcome.text}</p>}
        {question !== undefined && <Ask question={question} onClose={() => setQuestion(undefined)} />}
      </>
    ),
  }
}

/** `open`: whether the form is shown at first. */
export function Register({ actions, open }: { actions: Actions; open: boolean }): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const query = new URLSearchParams({ url: field(form, 'url'), synchronous: 'true' })
    const name = field(form, 'name')
    if (name !== '') query.set('model_name', name)
    query.set('initial_workers', field(form, 'workers'))
    actions.run({ what: 'Register the model', method: 'POST', path: `/models?${query.toString()}` })
  }
  return (
    <details open={open}>
      <summary>Register a model</summary>
      <form class="bar" onSubmit={submit} aria-label="Register a model">
        <Field id="url" label="Archive in the model store, or URL">
          <input id="url" name="url" required placeholder="my-model.mar" />
        </Field>
        <Field id="name" label="Name">
          <input id="name" name="name" placeholder="as in the archive" />
        </Field>
        <Field id="workers" label="Workers">
          <input id="workers" name="workers" type="number" min="0" defaultValue="1" required />
        </Field>
        <button type="submit" disabled={actions.busy}>
          Register
        </button>
        <Doc page="handlers/overview.md">How to write a model</Doc>
      </form>
    </details>
  )
}

function field(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

/** Scale, make the default, unregister. */
export function ModelActions({ model, actions }: { model: ModelOverview; actions: Actions }): JSX.Element {
  const { isDefault, minWorkers, open } = model
  const { busy, run, ask } = actions
  const title = keyOf(model)
  const path = pathOf(model)
  const scale = (event: SubmitEvent): void => {
    event.preventDefault()
    const workers = field(new FormData(event.currentTarget as HTMLFormElement), 'workers')
    const action: Action = {
      what: `Scale ${title} to ${workers}`,
      method: 'PUT',
      path: `${path}?${new URLSearchParams({ min_worker: workers, synchronous: 'true' }).toString()}`,
    }
    if (Number(workers) < minWorkers)
      ask(`Scale ${title} from ${minWorkers} down to ${workers} workers?`, action)
    else run(action)
  }
  const setDefault: Action = { what: `Make ${title} the default`, method: 'PUT', path: `${path}/set-default` }
  return (
    <form class="bar" onSubmit={scale} aria-label={`Scale ${title}`}>
      <label>
        Workers <input name="workers" type="number" min="0" defaultValue={String(minWorkers)} required />
      </label>
      <button type="submit" disabled={busy}>
        Scale
      </button>
      {!isDefault && (
        <button
          type="button"
          disabled={busy}
          onClick={() => ask(`Send requests without a version to ${title}?`, setDefault)}
        >
          Set default
        </button>
      )}
      <Unregister model={model} open={open} actions={actions} />
    </form>
  )
}

/** `open`: its open requests. */
export function Unregister(props: {
  model: ModelOverview | FailedOverview
  open: number
  actions: Actions
}): JSX.Element {
  const { model, open, actions } = props
  const title = keyOf(model)
  const unregister: Action = { what: `Unregister ${title}`, method: 'DELETE', path: pathOf(model) }
  return (
    <button
      type="button"
      class="danger"
      disabled={actions.busy}
      onClick={() => actions.ask(`Unregister ${title}? It has ${count(open, 'open request')}.`, unregister)}
    >
      Unregister
    </button>
  )
}

function pathOf({ modelName, modelVersion }: ModelOverview | FailedOverview): string {
  const version = modelVersion === undefined ? '' : `/${encodeURIComponent(modelVersion)}`
  return `/models/${encodeURIComponent(modelName)}${version}`
}
