import {
  json,
  object,
  pathParameter,
  type Operation,
  type PathItem,
  type Response,
  type Schema,
} from '../openapi.ts'
import { describedPaths, type RestPath, undescribedPaths } from '../rest-dialect.ts'

const ERROR = object({
  error: object({
    message: ['string', 'What went wrong.'],
    type: ['string', 'The kind of error, such as invalid_request_error.'],
    param: ['string', 'The field at fault; null: none.'],
    code: ['string', 'The same for programs, such as model_not_found; null: nothing more to say.'],
  }),
})
const FAILURES: Record<string, Response> = {
  '400': json('The request cannot be used.', ERROR),
  '401': json('The key is not valid.', ERROR),
  '404': json('There is no such model.', ERROR),
  '429': json('Too many requests wait already.', ERROR),
  '500': json('The server or the handler failed.', ERROR),
  '503': json('The model is not loaded yet, or waited too long.', ERROR),
}

const MODEL: readonly [string, string] = ['string', 'Its name.']
const LIST: Schema = { type: 'array', items: { type: 'object' } }
const SAMPLING = {
  stream: ['boolean', 'Whether the answer comes as events, the last of which is [DONE].'],
  max_tokens: ['integer', 'Tokens of an answer at most.'],
  temperature: ['number', 'From 0 (always the likeliest token) to 2.'],
  top_p: ['number', 'From 0 to 1: tokens that are taken into account.'],
  n: ['integer', 'Answers to make.'],
  seed: ['integer', 'The same one gives the same answer.'],
} as const

/** Under /v1. */
const OPENAI_PATHS: Readonly<Record<string, PathItem>> = {
  '/v1/models': { get: told('openaiModels', 'Lists the models.', modelList()) },
  '/v1/models/{model_name}': {
    get: {
      ...told('openaiModel', 'Tells what a model is.', model()),
      parameters: [pathParameter('model_name', 'The model.')],
    },
  },
  '/v1/chat/completions': {
    post: asked('chatCompletions', 'Continues a chat.', {
      messages: { ...LIST, description: 'What was said, each with role and content.' },
      ...SAMPLING,
      tools: { ...LIST, description: 'Functions that the model may call.' },
    }),
  },
  '/v1/completions': {
    post: asked('completions', 'Continues a text.', {
      prompt: ['string', 'The text; a list of texts, or token ids, is good too.'],
      ...SAMPLING,
    }),
  },
  '/v1/embeddings': {
    post: asked(
      'embeddings',
      'Makes a vector of each text.',
      {
        input: ['string', 'The text; a list of texts, or token ids, is good too.'],
        encoding_format: ['string', 'float, or base64 of 32-bit floats.'],
      },
      false,
    ),
  },
}

function model(): Schema {
  return object({
    id: MODEL,
    object: ['string', 'model'],
    created: ['integer', 'When it was registered, in seconds since 1970.'],
    owned_by: ['string', 'This server.'],
  })
}

function modelList(): Schema {
  return object({
    object: ['string', 'list'],
    data: { type: 'array', items: model(), description: 'The models.' },
    models: { type: 'array', items: { type: 'string' }, description: 'Their names, as KServe has them.' },
  })
}

function told(operationId: string, description: string, answer: Schema): Operation {
  const { '401': token, '404': none } = FAILURES
  return {
    description,
    operationId,
    parameters: [],
    responses: { '200': json('What is asked for.', answer), '401': token!, '404': none! },
  }
}

/** The first field is needed, the others are not. */
function asked(
  operationId: string,
  description: string,
  fields: Parameters<typeof object>[0],
  streams = true,
): Operation {
  const [, ...optional] = Object.keys(fields)
  const answer = json('The answer as the OpenAI API has it.', { type: 'object' })
  const events = { 'text/event-stream': { schema: { type: 'string' } } }
  return {
    description,
    operationId,
    parameters: [],
    requestBody: {
      ...json(
        'A request of the OpenAI API; further fields are passed on.',
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

/** Where KServe's and Seldon's clients ask for the same. */
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
    ...describedPaths(OPENAI_PATHS, 'inference'),
    ...undescribedPaths('inference', 'GET', ['/openai/v1/models', '/openai/v1/models/{model_name}']),
    ...undescribedPaths('inference', 'POST', OTHERS),
  ]
}
