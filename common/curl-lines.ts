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

/**
 * One command line for each API that the model speaks, as far as its handler's methods tell. The last one
 * fits it best.
 * @param base address of the REST APIs
 */
export function curlLines({ name, methods = [], inputs: declared }: ModelToAsk, base: string): CurlLine[] {
  const path = encodeURIComponent(name)
  const openai = openAiLine(name, methods, base)
  const isText = methods.includes('chatCompletions') || methods.includes('completions')
  const plain: CurlLine = {
    api: 'TorchServe',
    line: `curl -N -H 'content-type: text/plain' -d '${TEXT}' ${base}/predictions/${path}`,
  }
  if (hasTensorMethod(methods)) {
    const route = methods.includes('predictStream') ? 'infer_stream' : 'infer'
    const line = post(`${base}/v2/models/${path}/${route}`, { inputs: sampleInputs(declared) })
    const tensors: CurlLine = { api: 'Open Inference', line }
    return methods.includes('handle') ? [plain, tensors] : [tensors]
  }
  if (openai !== undefined && !isText) return [openai]
  if (openai === undefined) return [plain]
  const generate = post(`${base}/v2/models/${path}/generate`, { text_input: TEXT })
  return [plain, { api: 'Open Inference', line: generate }, openai]
}

function openAiLine(model: string, methods: readonly ListedMethod[], base: string): CurlLine | undefined {
  const line = (path: string, body: object): CurlLine => ({
    api: 'OpenAI',
    line: post(`${base}/v1/${path}`, { model, ...body }),
  })
  if (methods.includes('chatCompletions'))
    return line('chat/completions', {
      stream: true,
      messages: [{ role: 'user', content: 'Tell me a story' }],
    })
  if (methods.includes('completions')) return line('completions', { stream: true, prompt: TEXT })
  return methods.includes('embeddings') ? line('embeddings', { input: TEXT }) : undefined
}

function post(url: string, body: object): string {
  const data = shellWord(JSON.stringify(body))
  return `curl -N -H 'content-type: application/json' -d ${data} ${url}`
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
export function sampleInputs(declared: readonly DeclaredTensor[]): object[] {
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
