import type { Operation } from '../../../common/openai/types.ts'
import type { Operation as PathOperation, PathItem, Response, Schema } from '../../../common/openapi.ts'
import { json, object, pathParameter } from '../openapi.ts'
import { describedPaths, type RestPath, undescribedPaths } from '../rest-dialect.ts'

/** The operation of an OpenAI API path. */
export interface OpenAIRoute {
  /** `images`: image generation, which no handler supports; `unknown`: not a path of the API. */
  operation: Operation | 'models' | 'images' | 'health' | 'unknown'
  /**
   * For `models`: the requested model. Otherwise the model in the path (Seldon's form), which the body must
   * not contradict.
   */
  model: string | undefined
  /** Only with a model in the path; absent: the default version. */
  version?: string
}

const PATHS: ReadonlyMap<string, Operation | 'images'> = new Map([
  ['chat/completions', 'chat'],
  ['completions', 'completions'],
  ['embeddings', 'embeddings'],
  ['images/generations', 'images'],
])

const HEALTH: OpenAIRoute = { operation: 'health', model: undefined }

/**
 * The route of a path; undefined if it does not belong to the OpenAI API. The API is served under /v1, under
 * /openai/v1 (as in KServe), and below a model's or version's infer and infer_stream (for Seldon's OpenAI
 * clients), with /health as in vLLM and llama-server; see docs/openai.md.
 */
export function openaiRoute(segments: readonly string[]): OpenAIRoute | undefined {
  if (segments[0] === 'health') return segments.length === 1 ? HEALTH : undefined
  if (segments[0] === 'openai') return segments[1] === 'v1' ? below(segments.slice(2)) : undefined
  if (segments[0] === 'v1') return below(segments.slice(1))
  return segments[0] === 'v2' ? belowModel(segments) : undefined
}

function below(rest: readonly string[]): OpenAIRoute {
  // The whole path was decoded before it was split, so slashes of an id are separators here.
  if (rest[0] === 'models') return { operation: 'models', model: rest.slice(1).join('/') || undefined }
  return { operation: PATHS.get(rest.join('/')) ?? 'unknown', model: undefined }
}

function belowModel([, models, model, ...rest]: readonly string[]): OpenAIRoute | undefined {
  if (models !== 'models' || !model) return undefined
  const version = rest[0] === 'versions' && rest[1] !== '' ? rest[1] : undefined
  const [verb, ...named] = version === undefined ? rest : rest.slice(2)
  if (verb !== 'infer' && verb !== 'infer_stream') return undefined
  const operation = PATHS.get(named.join('/'))
  return operation === undefined ? undefined : { operation, model, version }
}

const ERROR = object({
  error: object({
    message: ['string', 'The error message.'],
    type: ['string', 'The kind of error, such as invalid_request_error.'],
    param: ['string', 'The invalid field, or null.'],
    code: ['string', 'An error code for programs, such as model_not_found, or null.'],
  }),
})
const FAILURES: Record<string, Response> = {
  '400': json('The request is not valid.', ERROR),
  '401': json('The key is not valid.', ERROR),
  '404': json('The model does not exist.', ERROR),
  '429': json('Too many requests are waiting.', ERROR),
  '500': json('The server or the handler failed.', ERROR),
  '503': json('The model is not loaded yet, or no worker was free in time.', ERROR),
}

const MODEL: readonly [string, string] = ['string', 'Name of the model.']
const LIST: Schema = { type: 'array', items: { type: 'object' } }
const SAMPLING = {
  stream: ['boolean', 'Whether to stream the response as events, the last of which is [DONE].'],
  max_tokens: ['integer', 'Maximum number of generated tokens.'],
  temperature: ['number', 'Sampling temperature from 0 (always the most likely token) to 2.'],
  top_p: ['number', 'Nucleus sampling: total probability of the considered tokens, from 0 to 1.'],
  n: ['integer', 'Number of choices to generate.'],
  seed: ['integer', 'Seed for reproducible sampling.'],
} as const

/** Paths under /v1. */
const OPENAI_PATHS: Readonly<Record<string, PathItem>> = {
  '/v1/models': { get: told('openaiModels', 'Lists the models.', modelList()) },
  '/v1/models/{model_name}': {
    get: {
      ...told('openaiModel', 'Describes a model.', model()),
      parameters: [pathParameter('model_name', 'The model.')],
    },
  },
  '/v1/chat/completions': {
    post: asked('chatCompletions', 'Continues a chat.', {
      messages: { ...LIST, description: 'The messages of the chat, each with role and content.' },
      ...SAMPLING,
      tools: { ...LIST, description: 'Tools that the model may call.' },
    }),
  },
  '/v1/completions': {
    post: asked('completions', 'Continues a text.', {
      prompt: ['string', 'A string, a list of strings, or token ids.'],
      ...SAMPLING,
    }),
  },
  '/v1/embeddings': {
    post: asked(
      'embeddings',
      'Computes an embedding vector for each text.',
      {
        input: ['string', 'A string, a list of strings, or token ids.'],
        encoding_format: ['string', 'float, or base64 (little-endian 32-bit floats).'],
      },
      false,
    ),
  },
}

function model(): Schema {
  return object({
    id: MODEL,
    object: ['string', 'model'],
    created: ['integer', 'Time of registration, in seconds since 1970.'],
    owned_by: ['string', 'This server.'],
  })
}

function modelList(): Schema {
  return object({
    object: ['string', 'list'],
    data: { type: 'array', items: model(), description: 'The models.' },
    models: { type: 'array', items: { type: 'string' }, description: 'Names of the models, as in KServe.' },
  })
}

function told(operationId: string, description: string, answer: Schema): PathOperation {
  const { '401': token, '404': none } = FAILURES
  return {
    description,
    operationId,
    parameters: [],
    responses: { '200': json('The request.', answer), '401': token!, '404': none! },
  }
}

/** The first field is required, the others are optional. */
function asked(
  operationId: string,
  description: string,
  fields: Parameters<typeof object>[0],
  streams = true,
): PathOperation {
  const [, ...optional] = Object.keys(fields)
  const answer = json('The response of the OpenAI API.', { type: 'object' })
  const events = { 'text/event-stream': { schema: { type: 'string' } } }
  return {
    description,
    operationId,
    parameters: [],
    requestBody: {
      ...json(
        'A request of the OpenAI API. Other fields pass unchanged.',
        object({ model: MODEL, ...fields }, optional),
      ),
      required: true,
    },
    responses: {
      '200': streams ? { ...answer, content: { ...answer.content, ...events } } : answer,
      ...FAILURES,
    },
  }
}

/** Paths of KServe's and Seldon's clients for the same operations. */
const OTHERS = [
  '/openai/v1/chat/completions',
  '/openai/v1/completions',
  '/openai/v1/embeddings',
  ...['/v2/models/{model_name}', '/v2/models/{model_name}/versions/{model_version}'].flatMap((model) =>
    ['infer', 'infer_stream'].flatMap((verb) =>
      ['chat/completions', 'completions', 'embeddings'].map((operation) => `${model}/${verb}/${operation}`),
    ),
  ),
]

export function openaiPaths(): RestPath[] {
  return [
    { method: 'GET', path: '/health', token: undefined },
    ...describedPaths(OPENAI_PATHS, 'inference', 'OpenAI'),
    ...undescribedPaths('inference', 'GET', ['/openai/v1/models', '/openai/v1/models/{model_name}']),
    ...undescribedPaths('inference', 'POST', OTHERS),
  ]
}
