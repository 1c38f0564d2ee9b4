import { ServeError } from '../../../protocol/errors.ts'
import type { ReplyHead } from '../../models/reply-sink.ts'
import { DATATYPES, type Datatype } from './datatypes.ts'
import type {
  InferOutputTensor,
  InferParameter,
  ModelInferRequest,
  ModelInferResponse,
  Parameters,
} from './messages.ts'

type Json = Readonly<Record<string, unknown>>

/**
 * The handler's JSON as a ModelInferResponse (spec 3.5). What it leaves out of id, model_name and model_version comes from the request.
 * @throws ServeError INVALID_OUTPUT when it is none, HANDLER_REJECTED when the handler said an error status with something else
 */
export function inferResponse(
  request: ModelInferRequest,
  body: Uint8Array,
  { status }: ReplyHead,
): ModelInferResponse {
  const text = Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()
  if (status >= 400) throw new ServeError('HANDLER_REJECTED', text, { status })
  const reply = object(parse(text), 'it')
  return {
    id: optionalText(reply, 'id') ?? request.id ?? '',
    model_name: optionalText(reply, 'model_name') ?? request.model_name ?? '',
    model_version: optionalText(reply, 'model_version') ?? request.model_version ?? '',
    parameters: parameters(reply['parameters']),
    outputs: list(reply['outputs'], 'outputs').map((output) => outputTensor(object(output, 'an output'))),
  }
}

function outputTensor(output: Json): InferOutputTensor {
  const name = requiredText(output, 'name')
  const datatype = requiredText(output, 'datatype')
  const shape = list(output['shape'], `shape of ${name}`)
  if (!shape.every((size) => fits(size, INT64))) throw invalid(`shape of ${name} holds no whole numbers`)
  const type = DATATYPES.get(datatype)
  if (type?.field === undefined) throw invalid(`datatype ${datatype} of ${name} cannot be sent`)
  const elements = list(output['data'], `data of ${name}`).flat(MAX_DIMENSIONS)
  if (!elements.every((element) => fits(element, type))) throw invalid(`data of ${name} is not ${datatype}`)
  const sent = type.kind === 'bytes' ? elements.map((element) => Buffer.from(element as string)) : elements
  return {
    name,
    datatype,
    shape: shape as number[],
    parameters: parameters(output['parameters']),
    contents: { [type.field]: sent },
  }
}

/** The protocol allows nested arrays as well as flat ones. */
const MAX_DIMENSIONS = 32
const INT64 = DATATYPES.get('INT64')!

/** Integers beyond what a JSON number holds exactly may be texts. */
function fits(element: unknown, { kind, min, max }: Datatype): boolean {
  switch (kind) {
    case 'boolean':
      return typeof element === 'boolean'
    case 'bytes':
      return typeof element === 'string'
    case 'float':
      return typeof element === 'number'
    case 'integer': {
      const isText = typeof element === 'string' && /^-?\d{1,20}$/.test(element)
      if (!isText && !Number.isInteger(element)) return false
      const value = BigInt(element as string | number)
      return value >= min! && value <= max!
    }
  }
}

function parameters(value: unknown): Parameters {
  if (value === undefined || value === null) return {}
  const entries = Object.entries(object(value, 'parameters'))
  return Object.fromEntries(entries.map(([name, each]) => [name, parameter(name, each)]))
}

function parameter(name: string, value: unknown): InferParameter {
  if (typeof value === 'boolean') return { bool_param: value }
  if (typeof value === 'string') return { string_param: value }
  if (Number.isSafeInteger(value)) return { int64_param: String(value) }
  throw invalid(`parameter ${name} is no boolean, integer or text`)
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw invalid('it is not JSON', cause)
  }
}

function object(value: unknown, what: string): Json {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Json
  throw invalid(`${what} is no JSON object`)
}

function list(value: unknown, what: string): unknown[] {
  if (Array.isArray(value)) return value
  throw invalid(`${what} is no list`)
}

function optionalText(from: Json, field: string): string | undefined {
  return from[field] === undefined || from[field] === null ? undefined : requiredText(from, field)
}

function requiredText(from: Json, field: string): string {
  const value = from[field]
  if (typeof value === 'string') return value
  throw invalid(`${field} is no text`)
}

function invalid(why: string, cause?: unknown): ServeError {
  return new ServeError('INVALID_OUTPUT', `The handler's answer is no inference response: ${why}`, { cause })
}
