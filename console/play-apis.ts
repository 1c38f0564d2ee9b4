import {
  type DeclaredTensor,
  exampleBody,
  type ModelToAsk,
  pathToAsk,
  type Way,
} from '../common/curl-lines.ts'

/** A model as the playground asks it. */
export interface PlayModel {
  readonly name: string
  /** Undefined: the default version, or the one that weights choose. */
  readonly version: string | undefined
  /** Its declared inputs; empty: it declares none. */
  readonly inputs: readonly DeclaredTensor[]
}

/** One way to ask a model. */
export interface PlayApi {
  readonly id: Way
  readonly title: string
  /** Whether it can ask for a version. OpenAI's API names a model only. */
  readonly takesVersions: boolean
  /** Where the answer's text is in one piece; absent: the piece is text. */
  readonly text?: readonly (readonly (string | number)[])[]
}

/** The APIs of the inference port. */
export const PLAY_APIS: readonly [PlayApi, ...PlayApi[]] = [
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
export function exampleOf({ id }: PlayApi, model: ModelToAsk): string {
  const body = exampleBody(id, model)
  return typeof body === 'string' ? body : JSON.stringify(body, null, 2)
}

/** What one piece of an answer adds to the text of the answer. */
export function textOf({ text }: PlayApi, piece: string): string {
  if (text === undefined) return piece
  return text.map((path) => textAt(piece, path)).find((found) => found !== '') ?? ''
}

/** The text at a place of a JSON text; empty: there is none. */
export function textAt(json: string, path: readonly (string | number)[]): string {
  try {
    let value: unknown = JSON.parse(json)
    for (const step of path) {
      if (typeof value !== 'object' || value === null) return ''
      value = Reflect.get(value, step)
    }
    return typeof value === 'string' ? value : ''
  } catch {
    return '' // `[DONE]`, or an error in plain text
  }
}
