import { type DeclaredTensor, sampleInputs } from '../common/curl-lines.ts'
import { GENERATE_STREAM, type GrpcWay, MODEL_INFER, PREDICTIONS } from './play-grpc.ts'

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
  readonly id: string
  readonly title: string
  readonly contentType: string
  /** Whether a file can be the body. */
  readonly takesFiles?: true
  /** Whether it can ask for a version. */
  readonly takesVersions?: true
  /** Absent: it has no gRPC. */
  readonly grpc?: GrpcWay
  path(model: PlayModel): string
  /** A body to begin with. */
  example(model: PlayModel): string
  /** What one piece of its answer adds to the text of the answer. */
  textOf(piece: string): string
}

const JSON_TYPE = 'application/json'

/** The APIs of the inference port. */
export const PLAY_APIS: readonly [PlayApi, ...PlayApi[]] = [
  {
    id: 'torchserve',
    title: 'TorchServe predictions',
    contentType: 'text/plain',
    takesFiles: true,
    takesVersions: true,
    grpc: PREDICTIONS,
    path: ({ name, version }) => below('/predictions', name, version),
    example: () => 'Once upon a time',
    textOf: (piece) => piece,
  },
  {
    id: 'infer',
    title: 'Open Inference: infer',
    contentType: JSON_TYPE,
    takesVersions: true,
    grpc: MODEL_INFER,
    path: (model) => `${v2(model)}/infer`,
    example: ({ inputs }) => pretty({ inputs: sampleInputs(inputs) }),
    textOf: (piece) => piece,
  },
  {
    id: 'generate-stream',
    title: 'Open Inference: generate_stream',
    contentType: JSON_TYPE,
    takesVersions: true,
    grpc: GENERATE_STREAM,
    path: (model) => `${v2(model)}/generate_stream`,
    example: () => pretty({ text_input: 'Once upon a time' }),
    textOf: (piece) => textAt(piece, ['text_output']),
  },
  {
    id: 'chat',
    title: 'OpenAI: chat completions',
    contentType: JSON_TYPE,
    path: () => '/v1/chat/completions',
    example: ({ name }) =>
      pretty({ model: name, stream: true, messages: [{ role: 'user', content: 'Tell me a story' }] }),
    textOf: (piece) =>
      textAt(piece, ['choices', 0, 'delta', 'content']) ||
      textAt(piece, ['choices', 0, 'message', 'content']),
  },
  {
    id: 'completions',
    title: 'OpenAI: completions',
    contentType: JSON_TYPE,
    path: () => '/v1/completions',
    example: ({ name }) => pretty({ model: name, stream: true, prompt: 'Once upon a time' }),
    textOf: (piece) => textAt(piece, ['choices', 0, 'text']),
  },
]

function below(path: string, name: string, version: string | undefined): string {
  const segments = version === undefined ? [name] : [name, version]
  return [path, ...segments.map(encodeURIComponent)].join('/')
}

function v2({ name, version }: PlayModel): string {
  const model = `/v2/models/${encodeURIComponent(name)}`
  return version === undefined ? model : `${model}/versions/${encodeURIComponent(version)}`
}

function pretty(body: object): string {
  return JSON.stringify(body, null, 2)
}

/** The text at a place of a JSON text; empty: there is none. */
function textAt(json: string, path: readonly (string | number)[]): string {
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
