import { useEffect, useRef, useState } from 'preact/hooks'
import {
  type DeclaredTensor,
  exampleBody,
  type ModelToAsk,
  pathToAsk,
  type Way,
  waysToAsk,
} from '../common/curl-lines.ts'
import type { ModelOverview, OverviewEvent } from '../common/server-events.ts'
import type { Api } from './api.ts'
import { healthOf } from './health.ts'
import { keyOf } from './history.ts'
import type { CopiedRequest } from './play-copies.tsx'
import { isUnauthorized, textAt } from './play-run.ts'

/** What the form of the playground holds. */
interface Draft {
  readonly model: PlayModel
  readonly api: PlayApi
  readonly body: string
  readonly file: File | undefined
  /** Undefined: the one that the user signed in with. */
  readonly token: string | undefined
}

export function typeOf({ api, file }: Draft): string {
  if (file !== undefined) return 'application/octet-stream'
  return api.id === 'predictions' ? 'text/plain' : 'application/json'
}

/** The request to the ports that serve its API. */
export function copied(draft: Draft, { server }: OverviewEvent, hasToken: boolean): CopiedRequest {
  const { api, model, body, file, token } = draft
  const address = server.listening.find(({ name }) => /^Inference.*REST/.test(name))?.address
  const base =
    address === undefined || !address.startsWith('http') ? location.origin : reachable(address).origin
  return {
    url: `${base}${pathOf(api, model)}`,
    contentType: typeOf(draft),
    body: file === undefined ? body : { file: file.name },
    needsToken: hasToken || token !== undefined,
  }
}

/** What the user chooses: a model by its key, an API for each model, and a key for inference. */
interface Chosen {
  readonly key: string | undefined
  readonly apis: ReadonlyMap<string, string>
  readonly token: string | undefined
}

export interface DraftState {
  readonly draft: Draft
  readonly model: ModelOverview
  /** The APIs that can ask for it. */
  readonly apis: readonly PlayApi[]
  /** Whether the key that the user signed in with was refused for inference. */
  readonly needsKey: boolean
  chooseModel(key: string): void
  chooseApi(id: string): void
  enterToken(token: string): void
  write(body: string): void
  take(file: File | undefined): void
}

/**
 * Undefined: there is no model. What was written for a model and an API comes back with them.
 * @param named the model that the address names
 */
export function useDraft(
  overview: OverviewEvent | undefined,
  api: Api,
  named: string | null,
): DraftState | undefined {
  const [chosen, setChosen] = useState<Chosen>({ key: undefined, apis: new Map(), token: undefined })
  const [bodies, setBodies] = useState<ReadonlyMap<string, string>>(new Map())
  const [file, setFile] = useState<File>()
  useEffect(() => {
    if (named !== null) setChosen({ ...chosen, key: named })
  }, [named])
  const models = overview?.models ?? []
  const first = useRef<string | undefined>(undefined)
  const model =
    models.find((each) => keyOf(each) === (chosen.key ?? first.current)) ??
    models.find(isWell) ??
    models.find(({ state }) => state !== 'failed') ??
    models[0]
  // It stays, whatever becomes of it.
  if (model !== undefined) first.current ??= keyOf(model)
  const { inputs, isRefused } = useInputs(model?.modelName, api, chosen.token)
  if (model === undefined) return undefined
  const key = keyOf(model)
  const asked: PlayModel = {
    name: model.modelName,
    version: model.isDefault ? undefined : model.modelVersion,
    inputs,
  }
  const apis = PLAY_APIS.filter(({ takesVersions }) => takesVersions || asked.version === undefined)
  const fitting = chosen.apis.get(key) ?? waysToAsk(model.methods).at(-1)
  const spoken = apis.find(({ id }) => id === fitting) ?? PLAY_APIS[0]
  // What the user works on stays, also when another model comes first by now.
  const choose = (fields: Partial<Chosen>): void => setChosen({ ...chosen, key, ...fields })
  const place = `${key} ${spoken.id}`
  return {
    draft: {
      model: asked,
      api: spoken,
      body: bodies.get(place) ?? exampleOf(spoken, asked),
      file: takesFiles(spoken) ? file : undefined,
      token: chosen.token,
    },
    model,
    apis,
    needsKey: isRefused,
    chooseModel: (next) => choose({ key: next }),
    chooseApi: (id) => choose({ apis: new Map(chosen.apis).set(key, id) }),
    enterToken: (token) => choose({ token: token.trim() || undefined }),
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

interface Inputs {
  readonly inputs: readonly DeclaredTensor[]
  /** Whether the key may not ask for inference. */
  readonly isRefused: boolean
}

const UNKNOWN: Inputs = { inputs: [], isRefused: false }

function isWell(model: ModelOverview): boolean {
  return healthOf(model, undefined).level === 'good'
}

/** The inputs that a model declares; empty until they are known. */
function useInputs(name: string | undefined, api: Api, token: string | undefined): Inputs {
  const [known, setKnown] = useState<Inputs & { readonly name: string }>()
  useEffect(() => {
    if (name === undefined) return
    let isCurrent = true
    const read = async (): Promise<void> => {
      const answer = await api.infer(`/v2/models/${encodeURIComponent(name)}`, { method: 'GET' }, token)
      const text = await answer.text()
      if (!isCurrent) return
      const { inputs } = (answer.ok ? JSON.parse(text) : {}) as { inputs?: readonly DeclaredTensor[] }
      setKnown({ name, inputs: inputs ?? [], isRefused: isUnauthorized(answer.status, text) })
    }
    read().catch(() => undefined) // the example has another input then
    return () => {
      isCurrent = false
    }
  }, [name, api, token])
  return known !== undefined && known.name === name ? known : UNKNOWN
}

/** A model as the playground asks it. */
interface PlayModel {
  readonly name: string
  /** Undefined: the default version, or the one that weights choose. */
  readonly version: string | undefined
  /** Its declared inputs; empty: it declares none. */
  readonly inputs: readonly DeclaredTensor[]
}

/** One way to ask a model. */
interface PlayApi {
  readonly id: Way
  readonly title: string
  /** Whether it can ask for a version. OpenAI's API names a model only. */
  readonly takesVersions: boolean
  /** Where the answer's text is in one piece; absent: the piece is text. */
  readonly text?: readonly (readonly (string | number)[])[]
}

/** The APIs of the inference port. */
const PLAY_APIS: readonly [PlayApi, ...PlayApi[]] = [
  { id: 'predictions', title: 'TorchServe predictions', takesVersions: true },
  { id: 'infer', title: 'Open Inference: infer', takesVersions: true },
  { id: 'infer_stream', title: 'Open Inference: infer_stream', takesVersions: true },
  {
    id: 'generate_stream',
    title: 'Open Inference: generate_stream',
    takesVersions: true,
    text: [['text_output']],
  },
  {
    id: 'chat/completions',
    title: 'OpenAI: chat completions',
    takesVersions: false,
    text: [
      ['choices', 0, 'delta', 'content'],
      ['choices', 0, 'message', 'content'],
    ],
  },
  { id: 'completions', title: 'OpenAI: completions', takesVersions: false, text: [['choices', 0, 'text']] },
  { id: 'embeddings', title: 'OpenAI: embeddings', takesVersions: false },
]

/** TorchServe's API takes any body; the others take JSON. */
export function takesFiles({ id }: PlayApi): boolean {
  return id === 'predictions'
}

export function pathOf({ id }: PlayApi, { name, version }: PlayModel): string {
  return pathToAsk(id, name, version)
}

/** A body to begin with, the one that `torchserve-ts dev` prints. */
function exampleOf({ id }: PlayApi, model: ModelToAsk): string {
  const body = exampleBody(id, model)
  return typeof body === 'string' ? body : JSON.stringify(body, null, 2)
}

/** What one piece of an answer adds to the text of the answer. */
export function textOf({ text }: PlayApi, piece: string): string {
  if (text === undefined) return piece
  return text.map((path) => textAt(piece, path)).find((found) => found !== '') ?? ''
}

/** A server that listens on all addresses is asked at the one that the browser uses. */
function reachable(address: string): URL {
  const url = new URL(address)
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = location.hostname
  return url
}
