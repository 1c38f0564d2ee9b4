import { modelDescription } from './documents.ts'
import type { Operation, Parameter, PathItem } from '../../../../common/openapi.ts'
import { error, json, object, pathParameter, query, SERVER_ERROR, status } from '../../openapi.ts'
import { DESCRIPTION_PATHS } from './inference-paths.ts'
import { trafficOperations } from './traffic-paths.ts'

const MODEL = pathParameter('model_name', 'Name of the model.')
const VERSION = pathParameter('model_version', 'Version of the model.')
const NOT_FOUND = { '404': error('The model or version does not exist.') }
const ACCEPTED = { '202': status('The request was accepted; the work continues in the background.') }
/** TorchServe's description says 210 although the server sends 206; kept for equality. */
const PARTIAL = { '210': status('Fewer workers than requested are running so far.') }
const SYNCHRONOUS = 'Whether the response waits for the workers.'
const IGNORED = 'Accepted, but has no effect.'

/** Paths of one model. */
export const MODEL_PATHS: Readonly<Record<string, PathItem>> = {
  '/models/{model_name}': modelOperations('', [MODEL], 'the default version of a model'),
  '/models/{model_name}/{model_version}': modelOperations(
    'version_',
    [MODEL, VERSION],
    'one version of a model',
  ),
  '/models/{model_name}/{model_version}/set-default': {
    put: {
      description: 'Sets the default version of a model.',
      operationId: 'setDefault',
      parameters: [MODEL, VERSION],
      responses: { '200': status('The default version was set.'), ...NOT_FOUND, ...SERVER_ERROR },
    },
  },
  '/models/{model_name}/traffic': trafficOperations([MODEL]),
}

/** Paths of the management API. */
export const MANAGEMENT_PATHS: Readonly<Record<string, PathItem>> = {
  '/': DESCRIPTION_PATHS['/'],
  '/models': { get: listModels(), post: registerModel() },
  ...MODEL_PATHS,
  '/requests/{request_id}': {
    delete: {
      description: 'Cancels an open request of any client; its handler is told to stop.',
      operationId: 'cancelRequest',
      parameters: [pathParameter('request_id', 'The x-request-id of the request.')],
      responses: {
        '200': status('The request was cancelled.'),
        '404': error('No open request has this id.'),
        ...SERVER_ERROR,
      },
    },
  },
  '/events': { get: events() },
  '/configuration': { get: configuration() },
  '/api-description': DESCRIPTION_PATHS['/api-description'],
}

function events(): Operation {
  return {
    description:
      'A stream of Server-Sent Events about the server: overview and requests once a second, lines of its log as they are written.',
    operationId: 'events',
    parameters: [
      query(
        'topics',
        'Names of events with commas between them: overview, requests, log.',
        'string',
        'overview,requests,log',
      ),
      query('requests', 'Maximum number of requests in one event, 0 to 5000.', 'integer', '200'),
    ],
    responses: {
      '200': { description: 'The stream.', content: { 'text/event-stream': { schema: { type: 'string' } } } },
      '400': error('A parameter is not valid.'),
      '429': error('Too many viewers.'),
      ...SERVER_ERROR,
    },
  }
}

function configuration(): Operation {
  const setting = object(
    {
      name: ['string', 'Name of the key in config.properties.'],
      value: ['string', 'Its value, without secrets; absent: it has none.'],
      source: ['string', 'Where the value came from: file and line, flag, variable, or default.'],
      fallback: ['string', 'Its default; absent: it has none.'],
      meaning: ['string', 'What it is for.'],
    },
    ['value', 'fallback'],
  )
  const answer = object({ settings: { type: 'array', items: setting, description: 'All keys.' } })
  return {
    description: 'The effective configuration, and where each value came from.',
    operationId: 'configuration',
    parameters: [],
    responses: { '200': json('The keys.', answer), ...SERVER_ERROR },
  }
}

function listModels(): Operation {
  const model = object({
    modelName: ['string', 'Name of the model.'],
    modelUrl: ['string', 'URL or file that the model was registered from.'],
  })
  const list = object(
    {
      nextPageToken: ['string', 'Pass this as next_page_token to get the next page.'],
      models: { type: 'array', items: model, description: 'The models, by name.' },
    },
    ['nextPageToken'],
  )
  return {
    description: 'Lists the models.',
    operationId: 'listModels',
    parameters: [
      query('limit', 'Maximum number of models to return, 1 to 100.', 'integer', '100'),
      query('next_page_token', 'nextPageToken of the previous response.'),
    ],
    responses: { '200': json('One page of models.', list), ...SERVER_ERROR },
  }
}

function registerModel(): Operation {
  const runtime = query('runtime', 'Overrides runtime in the manifest.')
  runtime.schema.enum = ['PYTHON', 'PYTHON3', 'LSP']
  const url = query('url', 'A file or folder of the model store, or a URL (http, https, file).')
  return {
    description: 'Registers a model.',
    operationId: 'registerModel',
    parameters: [
      { ...url, required: true },
      query('model_name', 'Overrides modelName in the manifest.'),
      query('handler', 'Overrides handler in the manifest.'),
      runtime,
      query('batch_size', 'Maximum number of requests per batch.', 'integer', '1'),
      query('max_batch_delay', 'Maximum time that a batch waits to fill, in milliseconds.', 'integer', '100'),
      query('response_timeout', 'Maximum time of a handler to respond, in seconds.', 'integer', '120'),
      query('startup_timeout', 'Maximum time of a worker to load, in seconds.', 'integer', '120'),
      query('initial_workers', 'Initial number of workers.', 'integer', '0'),
      query('synchronous', SYNCHRONOUS, 'boolean', 'true'),
      query('s3_sse_kms', 'Whether the archive is in S3 and encrypted with KMS.', 'boolean', 'false'),
      query('sha256', 'SHA-256 that the archive must have, as 64 hexadecimal digits.'),
    ],
    responses: {
      '200': status('The model is registered.'),
      ...ACCEPTED,
      ...PARTIAL,
      '400': error('A parameter or the archive is not valid.'),
      '404': error('The URL does not exist.'),
      '409': error('This version is already registered.'),
      ...SERVER_ERROR,
    },
  }
}

/** The three operations of a model, with and without a version in the path. */
function modelOperations(prefix: string, path: Parameter[], subject: string): PathItem {
  return {
    get: {
      description: `Describes ${subject}.`,
      operationId: `${prefix}describeModel`,
      parameters: path,
      responses: {
        '200': json('One description per requested version.', modelDescription()),
        ...NOT_FOUND,
        ...SERVER_ERROR,
      },
    },
    put: {
      description: `Sets the number of workers of ${subject}.`,
      operationId: `${prefix}setAutoScale`,
      parameters: [
        ...path,
        query('min_worker', 'Minimum number of workers.', 'integer', '1'),
        query('max_worker', 'Maximum number of workers.', 'integer', '1'),
        query('number_gpu', IGNORED, 'integer', '0'),
        query('synchronous', SYNCHRONOUS, 'boolean', 'false'),
        query('timeout', IGNORED, 'integer', '-1'),
      ],
      responses: {
        '200': status('The workers are running.'),
        ...ACCEPTED,
        ...PARTIAL,
        '400': error('max_worker must not be less than min_worker.'),
        ...NOT_FOUND,
        ...SERVER_ERROR,
      },
    },
    delete: {
      description: `Removes ${subject}.`,
      operationId: `${prefix}unregisterModel`,
      parameters: [
        ...path,
        query('synchronous', IGNORED, 'boolean', 'false'),
        query('timeout', IGNORED, 'integer', '-1'),
      ],
      responses: {
        '200': status('The model was removed.'),
        ...ACCEPTED,
        ...NOT_FOUND,
        '408': error('Its workers did not end in time.'),
        ...SERVER_ERROR,
      },
    },
  }
}
