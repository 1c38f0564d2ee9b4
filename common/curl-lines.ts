import { hasTensorMethod, type ListedMethod } from './handler-methods.ts'

/** A command line that asks a model something. */
export interface CurlLine {
  readonly api: 'TorchServe' | 'Open Inference' | 'OpenAI'
  readonly line: string
}

/** What a command line for a model is made of. */
export interface ModelToAsk {
  readonly name: string
  /** Methods of the handler; undefined: not known yet. */
  readonly methods?: readonly ListedMethod[] | undefined
  /** Declared inputs; empty: none are. */
  readonly inputs: readonly DeclaredTensor[]
}

/** An input as the metadata of the Open Inference Protocol has it. */
export interface DeclaredTensor {
  readonly name: string
  readonly datatype: string
  /** -1 for a dimension of any size. */
  readonly shape: readonly number[]
}

const TEXT = 'Once upon a time'
/** For a model that declares nothing. */
const ANY_INPUT: DeclaredTensor = { name: 'input', datatype: 'BYTES', shape: [1] }

/** The ways to ask a model, each a path of an API. */
export type Way =
  | 'predictions'
  | 'infer'
  | 'infer_stream'
  | 'generate'
  | 'generate_stream'
  | 'chat/completions'
  | 'completions'
  | 'embeddings'

const OPENAI_WAYS = [
  ['chatCompletions', 'chat/completions'],
  ['completions', 'completions'],
  ['embeddings', 'embeddings'],
] as const

/** One command line for each of `waysToAsk`. @param base address of the REST APIs */
export function curlLines(model: ModelToAsk, base: string): CurlLine[] {
  return waysToAsk(model.methods).map((way) => {
    const body = exampleBody(way, model)
    const type = typeof body === 'string' ? 'text/plain' : 'application/json'
    const data = shellWord(typeof body === 'string' ? body : JSON.stringify(body))
    const line = `curl -N -H 'content-type: ${type}' -d ${data} ${base}${pathToAsk(way, model.name)}`
    return { api: apiOf(way), line }
  })
}

/** The ways that a model answers, one for each API, as its handler's methods show. The last one fits best. */
export function waysToAsk(methods: readonly ListedMethod[] = []): [Way, ...Way[]] {
  if (hasTensorMethod(methods)) {
    const way = methods.includes('predictStream') ? 'infer_stream' : 'infer'
    return methods.includes('handle') ? ['predictions', way] : [way]
  }
  const openai = OPENAI_WAYS.find(([method]) => methods.includes(method))?.[1]
  if (openai === undefined) return ['predictions']
  return openai === 'embeddings' ? [openai] : ['predictions', 'generate', openai]
}

/** @param version absent: the default version, or the one that weights choose */
export function pathToAsk(way: Way, name: string, version?: string): string {
  const api = apiOf(way)
  if (api === 'OpenAI') return `/v1/${way}`
  const model = encodeURIComponent(name)
  const of = version === undefined ? '' : encodeURIComponent(version)
  if (api === 'TorchServe') return `/predictions/${model}${of && `/${of}`}`
  return `/v2/models/${model}${of && `/versions/${of}`}/${way}`
}

/** A body that a model answers: text, or an object for JSON. */
export function exampleBody(way: Way, { name, inputs }: ModelToAsk): string | object {
  switch (way) {
    case 'predictions':
      return TEXT
    case 'infer':
    case 'infer_stream':
      return { inputs: sampleInputs(inputs) }
    case 'generate':
    case 'generate_stream':
      return { text_input: TEXT }
    case 'chat/completions':
      return { model: name, stream: true, messages: [{ role: 'user', content: 'Tell me a story' }] }
    case 'completions':
      return { model: name, stream: true, prompt: TEXT }
    case 'embeddings':
      return { model: name, input: TEXT }
  }
}

function apiOf(way: Way): CurlLine['api'] {
  if (way === 'predictions') return 'TorchServe'
  return OPENAI_WAYS.some(([, openai]) => openai === way) ? 'OpenAI' : 'Open Inference'
}

/** Any text as one word of a shell. */
export function shellWord(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** A path for a command line that is shown: as it is, if the shell leaves it so. */
export function shownPath(path: string): string {
  return /^[\w@%+=:,./][\w@%+=:,./-]*$/.test(path) ? path : shellWord(path)
}

/** The smallest values for the declared inputs; whoever packed the model has declared them. */
function sampleInputs(declared: readonly DeclaredTensor[]): object[] {
  return (declared.length > 0 ? declared.slice(0, MAX_INPUTS) : [ANY_INPUT]).map(sample)
}

function sample({ name, datatype, shape }: DeclaredTensor): object {
  const sizes = shape.slice(0, MAX_DIMENSIONS).map((size) => (size > 0 ? size : 1))
  const count = sizes.reduce((product, size) => product * size, 1)
  const value = datatype === 'BYTES' ? 'Hello' : datatype === 'BOOL' ? true : 1
  const data = Array.from({ length: Math.min(count, MAX_VALUES) }, () => value)
  return { name, datatype, shape: sizes, data: count > MAX_VALUES ? [...data, '...'] : data }
}

/** Values that are written out. A larger tensor, an image say, is for its user to complete. */
const MAX_VALUES = 16
/** Inputs and dimensions that are written out. */
const MAX_INPUTS = 16
const MAX_DIMENSIONS = 16
