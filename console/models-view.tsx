import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { ModelOverview } from '../common/server-events.ts'
import type { ViewProps } from './app.tsx'
import { reasonOf } from './api.ts'
import { Ask, type Question } from './ask.tsx'
import { ModelTitle } from './model-title.tsx'

/** One management call, and what it is called on the page. */
interface Action {
  readonly what: string
  readonly method: 'POST' | 'PUT' | 'DELETE'
  readonly path: string
}

interface Outcome {
  readonly ok: boolean
  readonly text: string
}

/** Register, scale, set default, unregister: the calls of the management API. */
export function ModelsView({ state, api }: ViewProps): JSX.Element {
  const [question, setQuestion] = useState<Question>()
  const [outcome, setOutcome] = useState<Outcome>()
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
  const ask = (text: string, action: Action): void =>
    setQuestion({ text, action: action.what, run: () => void run(action) })
  return (
    <>
      <Register busy={running !== undefined} onRegister={(action) => void run(action)} />
      <p role="status" class="told">
        {running !== undefined && `${running} …`}
        {outcome?.ok === true && outcome.text}
      </p>
      {outcome?.ok === false && <p role="alert">{outcome.text}</p>}
      {state.overview?.models.map((model) => (
        <ModelActions
          key={`${model.modelName} ${model.modelVersion}`}
          model={model}
          busy={running !== undefined}
          onRun={(action) => void run(action)}
          onAsk={ask}
        />
      ))}
      {question !== undefined && <Ask question={question} onClose={() => setQuestion(undefined)} />}
    </>
  )
}

function Register({
  busy,
  onRegister,
}: {
  busy: boolean
  onRegister: (action: Action) => void
}): JSX.Element {
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget as HTMLFormElement)
    const query = new URLSearchParams({ url: field(form, 'url'), synchronous: 'true' })
    const name = field(form, 'name')
    if (name !== '') query.set('model_name', name)
    query.set('initial_workers', field(form, 'workers'))
    onRegister({ what: 'Register the model', method: 'POST', path: `/models?${query.toString()}` })
  }
  return (
    <form class="bar" onSubmit={submit} aria-label="Register a model">
      <span class="field">
        <label for="url">Archive in the model store, or URL</label>
        <input id="url" name="url" required placeholder="my-model.mar" />
      </span>
      <span class="field">
        <label for="name">Name</label> <input id="name" name="name" placeholder="of the archive" />
      </span>
      <span class="field">
        <label for="workers">Workers</label>
        <input id="workers" name="workers" type="number" min="0" defaultValue="1" required />
      </span>
      <button type="submit" disabled={busy}>
        Register
      </button>
    </form>
  )
}

function field(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}

function ModelActions(props: {
  model: ModelOverview
  busy: boolean
  onRun: (action: Action) => void
  onAsk: (text: string, action: Action) => void
}): JSX.Element {
  const { model, busy, onRun, onAsk } = props
  const { modelName, modelVersion, isDefault, minWorkers, open } = model
  const title = `${modelName} ${modelVersion}`
  const path = `/models/${encodeURIComponent(modelName)}/${encodeURIComponent(modelVersion)}`
  const scale = (event: SubmitEvent): void => {
    event.preventDefault()
    const workers = field(new FormData(event.currentTarget as HTMLFormElement), 'workers')
    const action: Action = {
      what: `Scale ${title} to ${workers}`,
      method: 'PUT',
      path: `${path}?${new URLSearchParams({ min_worker: workers, synchronous: 'true' }).toString()}`,
    }
    if (Number(workers) < minWorkers)
      onAsk(`Scale ${title} from ${minWorkers} down to ${workers} workers?`, action)
    else onRun(action)
  }
  const setDefault: Action = { what: `Make ${title} the default`, method: 'PUT', path: `${path}/set-default` }
  const unregister: Action = { what: `Unregister ${title}`, method: 'DELETE', path }
  return (
    <article class="model">
      <h2>
        <ModelTitle {...model} />
      </h2>
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
            onClick={() => onAsk(`Send requests without a version to ${title}?`, setDefault)}
          >
            Set default
          </button>
        )}
        <button
          type="button"
          class="harms"
          disabled={busy}
          onClick={() => onAsk(`Unregister ${title}? It has ${open} open requests.`, unregister)}
        >
          Unregister
        </button>
      </form>
    </article>
  )
}
