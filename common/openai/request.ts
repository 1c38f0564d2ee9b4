import { ServeError } from '../errors.ts'
import { parseBody } from '../exact-json.ts'
import { isNestedTooDeep, isObject, MAX_NESTING, ownValue } from '../json.ts'
import type { ChatCompletionRequest, CompletionRequest, EmbeddingsRequest, Operation } from './types.ts'

/** Maximum number of choices in one request: prompts times `n`. The OpenAI API allows no more. */
export const MAX_CHOICES = 128
const MAX_INPUTS = 2_048
const MAX_STOPS = 16
/** Up to so many characters of an answer are held back for each stop text. */
const MAX_STOP_LENGTH = 1_024

export type OpenAIRequest =
  | { operation: 'chat'; body: ChatCompletionRequest }
  | { operation: 'completions'; body: CompletionRequest }
  | { operation: 'embeddings'; body: EmbeddingsRequest }

/**
 * Parses and validates a request, so that handlers get what the types promise. Unknown fields pass unchanged.
 * @throws ServeError INVALID_ARGUMENT with the parameter, MALFORMED_BODY
 */
export function readRequest(
  operation: Operation,
  bytes: Buffer,
  pathModel: string | undefined,
): OpenAIRequest {
  const body = parse(bytes)
  if (pathModel !== undefined && body['model'] === undefined) body['model'] = pathModel
  const request = checkRequest(operation, body)
  if (pathModel !== undefined && body['model'] !== pathModel)
    new Fields(body).refuse('model', `it must be ${pathModel}, the model in the path`)
  return request
}

/** The same for a parsed body. @throws ServeError INVALID_ARGUMENT with the parameter */
export function checkRequest(operation: Operation, body: Record<string, unknown>): OpenAIRequest {
  if (isNestedTooDeep(body))
    throw new ServeError('INVALID_ARGUMENT', `The body must not be nested deeper than ${MAX_NESTING} levels`)
  const fields = new Fields(body)
  fields.text('model', true)
  if (operation === 'embeddings') return { operation, body: embeddings(body, fields) }
  // Without new tokens, a completion is only its prompt.
  sampling(fields, operation === 'completions' && body['echo'] === true ? 0 : 1)
  if (operation === 'chat') return { operation, body: chat(body, fields) }
  return { operation, body: completion(body, fields) }
}

function parse(bytes: Buffer): Record<string, unknown> {
  const body = parseBody(bytes)
  if (isObject(body)) return body
  throw new ServeError('MALFORMED_BODY', 'The body must be a JSON object')
}

function sampling(fields: Fields, minTokens: 0 | 1): void {
  fields.flag('stream')
  fields.object('stream_options')
  fields.integer('n', 1, MAX_CHOICES)
  fields.integer('max_tokens', minTokens)
  fields.number('temperature', 0, 2)
  fields.number('top_p', 0, 1)
  fields.number('presence_penalty', -2, 2)
  fields.number('frequency_penalty', -2, 2)
  fields.integer('seed', Number.MIN_SAFE_INTEGER)
  fields.object('logit_bias')
  fields.texts('stop', MAX_STOPS, MAX_STOP_LENGTH)
}

function chat(body: Record<string, unknown>, fields: Fields): ChatCompletionRequest {
  fields.objects('messages', true)
  const messages = body['messages'] as Record<string, unknown>[]
  messages.forEach((message, i) => {
    const inner = new Fields(message, `messages[${i}].`)
    inner.text('role', true)
    inner.content('content')
    inner.objects('tool_calls')
  })
  fields.integer('max_completion_tokens', 1)
  fields.flag('logprobs')
  fields.integer('top_logprobs', 0, 20)
  if (body['top_logprobs'] != null && body['top_logprobs'] !== 0 && body['logprobs'] !== true)
    fields.refuse('top_logprobs', 'it requires logprobs to be true')
  fields.objects('tools')
  tools(body['tools'])
  toolChoice(body, fields)
  responseFormat(body, fields)
  return body as unknown as ChatCompletionRequest
}

function tools(value: unknown): void {
  if (value == null) return
  ;(value as Record<string, unknown>[]).forEach((tool, i) => {
    const outer = new Fields(tool, `tools[${i}].`)
    outer.object('function', true)
    const inner = new Fields(tool['function'] as Record<string, unknown>, `tools[${i}].function.`)
    inner.text('name', true)
    inner.object('parameters')
  })
}

/** `tool_choice` requires `tools`: without them the model could not make the call. */
function toolChoice({ tools: given, tool_choice: choice }: Record<string, unknown>, fields: Fields): void {
  if (choice == null || choice === 'none' || choice === 'auto') return
  if (choice !== 'required') fields.object('tool_choice')
  if (given == null || (given as unknown[]).length === 0) fields.refuse('tool_choice', 'it requires tools')
}

function responseFormat(body: Record<string, unknown>, fields: Fields): void {
  fields.object('response_format')
  const format = body['response_format'] as Record<string, unknown> | undefined
  if (format?.['type'] !== 'json_schema') return
  new Fields(format, 'response_format.').object('json_schema', true)
  new Fields(format['json_schema'] as Record<string, unknown>, 'response_format.json_schema.').object(
    'schema',
  )
}

function completion(body: Record<string, unknown>, fields: Fields): CompletionRequest {
  const prompts = fields.prompts('prompt', MAX_CHOICES)
  if (prompts * Number(body['n'] ?? 1) > MAX_CHOICES)
    fields.refuse('n', `prompts times n must not exceed ${MAX_CHOICES} choices`)
  fields.integer('logprobs', 0, 5)
  fields.flag('echo')
  fields.integer('best_of', 1, MAX_CHOICES)
  return body as unknown as CompletionRequest
}

function embeddings(body: Record<string, unknown>, fields: Fields): EmbeddingsRequest {
  fields.prompts('input', MAX_INPUTS)
  const format = body['encoding_format']
  if (format != null && format !== 'float' && format !== 'base64')
    fields.refuse('encoding_format', 'it must be float or base64')
  fields.integer('dimensions', 1)
  return body as unknown as EmbeddingsRequest
}

/**
 * Checks of single fields. Null counts as absent, as in the OpenAI API. Each throws ServeError
 * INVALID_ARGUMENT with the field as `param`.
 */
export class Fields {
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #prefix: string

  /** `prefix` precedes the field name in messages: `messages[0].` */
  constructor(fields: Readonly<Record<string, unknown>>, prefix = '') {
    this.#fields = fields
    this.#prefix = prefix
  }

  text(name: string, required = false): void {
    this.#check(name, required, 'must be a non-empty string', (v) => typeof v === 'string' && v !== '')
  }

  flag(name: string): void {
    this.#check(name, false, 'must be true or false', (v) => typeof v === 'boolean')
  }

  number(name: string, min: number, max: number): void {
    this.#check(name, false, `must be a number from ${min} to ${max}`, (v) => isWithin(v, min, max))
  }

  integer(name: string, min: number, max = Number.MAX_SAFE_INTEGER): void {
    const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
    this.#check(
      name,
      false,
      `must be a whole number ${range}`,
      (v) => isWithin(v, min, max) && Number.isInteger(v),
    )
  }

  object(name: string, required = false): void {
    this.#check(name, required, 'must be an object', isObject)
  }

  objects(name: string, required = false): void {
    const fits = (v: unknown): boolean => Array.isArray(v) && v.every(isObject) && (!required || v.length > 0)
    this.#check(name, required, `must be a ${required ? 'non-empty ' : ''}list of objects`, fits)
  }

  /** A string, or an array of strings, each of at most so many characters. */
  texts(name: string, max: number, maxLength: number): void {
    const isText = (v: unknown): boolean => typeof v === 'string' && v.length <= maxLength
    const fits = (v: unknown): boolean =>
      isText(v) || (Array.isArray(v) && v.length <= max && v.every(isText))
    const rule = `must be a string or a list of at most ${max} strings, each of at most ${maxLength} characters`
    this.#check(name, false, rule, fits)
  }

  /** The content of a message: a string, or an array of parts. */
  content(name: string): void {
    const isPart = (part: unknown): boolean =>
      isObject(part) &&
      typeof part['type'] === 'string' &&
      (part['type'] !== 'text' || typeof part['text'] === 'string')
    const fits = (v: unknown): boolean => typeof v === 'string' || (Array.isArray(v) && v.every(isPart))
    this.#check(name, false, 'must be a string or a list of parts with a type', fits)
  }

  /** A string, an array of token ids, or an array of these. Returns how many inputs they are. */
  prompts(name: string, max: number): number {
    const value = ownValue(this.#fields, name)
    if (typeof value === 'string' || isTokens(value)) return 1
    const fits = (v: unknown): boolean =>
      Array.isArray(v) &&
      v.length > 0 &&
      v.length <= max &&
      (v.every((text) => typeof text === 'string') || v.every(isTokens))
    this.#check(name, true, `must be a string, token ids, or a list of at most ${max} of these`, fits)
    return (value as unknown[]).length
  }

  refuse(name: string, why: string): never {
    const param = `${this.#prefix}${name}`
    throw new ServeError('INVALID_ARGUMENT', `Invalid ${param}: ${why}`, { param })
  }

  #check(name: string, required: boolean, rule: string, fits: (value: unknown) => boolean): void {
    const value = ownValue(this.#fields, name) ?? undefined
    if (value === undefined ? required : !fits(value)) this.refuse(name, `it ${rule}`)
  }
}

function isWithin(value: unknown, min: number, max: number): boolean {
  return typeof value === 'number' && value >= min && value <= max
}

function isTokens(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.length > 0 &&
    value.every((id) => Number.isInteger(id) && (id as number) >= 0)
  )
}
