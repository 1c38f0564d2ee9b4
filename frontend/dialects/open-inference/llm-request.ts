import { ServeError } from '../../../common/errors.ts'
import { exactJson } from '../../../common/exact-json.ts'
import type { ListedMethod } from '../../../common/handler-methods.ts'
import { checkBody } from '../../../common/json-bounds.ts'
import { isObject, ownValue, parseJson } from '../../../common/json.ts'
import { textElements } from '../../../common/tensors/bytes.ts'
import type { InferRequest } from '../../../common/tensors/message.ts'
import type { ModelStatus } from '../../models/operations.ts'
import { type Operation, OPERATIONS } from '../../../common/openai/types.ts'
import { checkRequest } from '../../../common/openai/request.ts'
import { messagesOf } from './llm-messages.ts'
import { TextTensors } from './text-tensors.ts'

type Fields = Record<string, unknown>

/** A request of the OpenAI API in the form of tensors. */
export interface LlmRequest {
  readonly operation: Operation
  /** JSON */
  readonly body: Buffer
}

/** Parameters that are fields of the OpenAI API; the others belong to the protocol. */
const FIELDS = [
  ...['temperature', 'top_p', 'max_tokens', 'max_completion_tokens', 'stop', 'n', 'seed', 'user', 'logprobs'],
  ...[
    'presence_penalty',
    'frequency_penalty',
    'logit_bias',
    'top_logprobs',
    'response_format',
    'stream_options',
  ],
  ...['reasoning_effort', 'echo', 'suffix', 'best_of', 'dimensions'],
  ...['top_k', 'min_p', 'repeat_penalty', 'repetition_penalty', 'ignore_eos', 'min_tokens'],
]

/**
 * Reads tensors for a handler of the OpenAI API, in the format of Seldon's clients (docs/open-inference.md):
 * role, content and type are a chat, prompt (or text_input) is a completion, input is for embeddings.
 * Undefined if the tensors are none of these, or the handler lacks the method.
 * @param maxElements of the JSON in texts, as checkBody counts them
 * @throws ServeError INVALID_TENSOR
 */
export function llmRequest(
  infer: InferRequest,
  { name: model, methods = [] }: Pick<ModelStatus, 'name' | 'methods'>,
  stream: boolean,
  maxElements: number,
): LlmRequest | undefined {
  const tensors = new TextTensors(infer.inputs)
  const operation = operationOf(tensors, methods)
  if (operation === undefined) return undefined
  checkTexts(infer, maxElements)
  const fields = { ...parameters(infer, operation), ...READ[operation](tensors), model }
  const body = operation === 'embeddings' ? { ...fields, encoding_format: 'float' } : { ...fields, stream }
  check(operation, body)
  return { operation, body: Buffer.from(exactJson(body)) }
}

/** Texts that are JSON are parsed, so they have the bounds of a body. @throws ServeError INVALID_TENSOR */
function checkTexts({ inputs, parameters: given = {} }: InferRequest, maxElements: number): void {
  const named = Object.values(given).filter((each) => typeof each === 'string')
  const texts = inputs.flatMap((input) => (input.datatype === 'BYTES' ? (textElements(input) ?? []) : []))
  const json = [...named, ...texts].filter((text) => /^\s*[[{]/.test(text))
  if (json.length > 0) asInvalidTensor(() => checkBody(Buffer.from(json.join(',')), maxElements))
}

function operationOf(tensors: TextTensors, methods: readonly ListedMethod[]): Operation | undefined {
  const has = (operation: Operation): boolean => methods.includes(OPERATIONS[operation].method)
  if (tensors.has('role') || tensors.has('content')) return has('chat') ? 'chat' : undefined
  if (tensors.has('prompt') || tensors.has('text_input'))
    return has('completions') ? 'completions' : undefined
  return tensors.has('input') && has('embeddings') ? 'embeddings' : undefined
}

const READ: Readonly<Record<Operation, (tensors: TextTensors) => Fields>> = {
  chat: (tensors) => ({ messages: messagesOf(tensors), ...toolFields(tensors) }),
  completions: (tensors) => ({ prompt: oneOrMore(tensors.texts('prompt') ?? tensors.texts('text_input')!) }),
  embeddings: (tensors) => ({ input: oneOrMore(tensors.texts('input')!) }),
}

function oneOrMore(texts: string[]): string | string[] {
  return texts.length === 1 ? texts[0]! : texts
}

function toolFields(tensors: TextTensors): Fields {
  const tools = tensors.texts('tools')?.map((tool) => parsed('tools', tool))
  const choice = tensors.text('tool_choice')
  const parallel = tensors.text('parallel_tool_calls')
  return {
    ...(tools !== undefined && { tools }),
    ...(choice !== undefined && {
      tool_choice: choice.startsWith('{') ? parsed('tool_choice', choice) : choice,
    }),
    ...(parallel !== undefined && { parallel_tool_calls: parallel.toLowerCase() === 'true' }),
  }
}

/**
 * Seldon puts other API fields into `llm_parameters` or `kwargs`, with equal meaning. Triton's clients send
 * them as parameters.
 */
function parameters({ parameters: given = {} }: InferRequest, operation: Operation): Fields {
  const { kwargs, llm_parameters: llm, embedding_parameters: embedding } = given
  const own = FIELDS.filter((name) => ownValue(given, name) !== undefined).map((name) => [
    name,
    value(ownValue(given, name)),
  ])
  return {
    ...(Object.fromEntries(own) as Fields),
    ...objectOf('kwargs', kwargs),
    ...objectOf('llm_parameters', llm),
    ...(operation === 'embeddings' && objectOf('embedding_parameters', embedding)),
  }
}

/** gRPC parameters cannot be objects, so an object is JSON text. */
function objectOf(name: string, given: unknown): Fields {
  const object = typeof given === 'string' ? parsed(name, given) : (given ?? {})
  if (isObject(object)) return object
  throw new ServeError('INVALID_TENSOR', `Parameter ${name} must be a JSON object`)
}

function value(given: unknown): unknown {
  return typeof given === 'string' && /^[[{]/.test(given) ? (parseJson(given) ?? given) : given
}

function parsed(name: string, text: string): unknown {
  const value = parseJson(text)
  if (value !== undefined) return value
  throw new ServeError('INVALID_TENSOR', `${name} must contain only JSON, not ${text.slice(0, 80)}`)
}

function check(operation: Operation, body: Fields): void {
  asInvalidTensor(() => checkRequest(operation, body))
}

/** With a 400, Seldon's proxy would load the model again and repeat the request. */
function asInvalidTensor(act: () => void): void {
  try {
    act()
  } catch (thrown) {
    throw new ServeError('INVALID_TENSOR', ServeError.from(thrown).message, { cause: thrown })
  }
}
