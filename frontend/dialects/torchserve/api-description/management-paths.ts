import { modelDescription } from './model-description.ts'
import {
  error,
  json,
  object,
  pathParameter,
  query,
  SERVER_ERROR,
  status,
  type Operation,
  type Parameter,
  type PathItem,
} from '../../openapi.ts'
import { DESCRIPTION_PATHS } from './inference-paths.ts'

const MODEL = pathParameter('model_name', 'The model.')
const VERSION = pathParameter('model_version', 'The version of the model.')
const NOT_FOUND = { '404': error('There is no such model or version.') }
const ACCEPTED = { '202': status('The work has begun.') }
/** TorchServe's description says 210 where both servers send 206 [quirk]. */
const PARTIAL = { '210': status('Fewer workers than wanted run so far.') }
const SYNCHRONOUS = 'Whether the answer waits for the workers.'
const IGNORED = 'Accepted without effect.'

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
      description: 'Makes a version the default one.',
      operationId: 'setDefault',
      parameters: [MODEL, VERSION],
      responses: { '200': status('It is the default now.'), ...NOT_FOUND, ...SERVER_ERROR },
    },
  },
}

/** Paths of the management API. */
export const MANAGEMENT_PATHS: Readonly<Record<string, PathItem>> = {
  '/': DESCRIPTION_PATHS['/'],
  '/models': { get: listModels(), post: registerModel() },
  ...MODEL_PATHS,
  '/api-description': DESCRIPTION_PATHS['/api-description'],
}

function listModels(): Operation {
  const model = object({ modelName: ['string', 'Its name.'], modelUrl: ['string', 'Where it came from.'] })
  const list = object(
    {
      nextPageToken: ['string', 'Give this as next_page_token to see more.'],
      models: { type: 'array', items: model, description: 'The models, by name.' },
    },
    ['nextPageToken'],
  )
  return {
    description: 'Lists the models.',
    operationId: 'listModels',
    parameters: [
      query('limit', 'At most so many, 1 to 100.', 'integer', '100'),
      query('next_page_token', 'Where to go on: nextPageToken of the answer before.'),
    ],
    responses: { '200': json('Models, as many as fit on a page.', list), ...SERVER_ERROR },
  }
}

function registerModel(): Operation {
  const runtime = query('runtime', 'Takes the place of runtime in the manifest.')
  runtime.schema.enum = ['PYTHON', 'PYTHON3', 'LSP']
  const url = query('url', 'A file or folder of the model store, or a URL (http, https, file).')
  return {
    description: 'Registers a model.',
    operationId: 'registerModel',
    parameters: [
      { ...url, required: true },
      query('model_name', 'Takes the place of modelName in the manifest.'),
      query('handler', 'Takes the place of handler in the manifest.'),
      runtime,
      query('batch_size', 'Requests that one batch may hold.', 'integer', '1'),
      query('max_batch_delay', 'Milliseconds that a batch may wait to fill up.', 'integer', '100'),
      query('response_timeout', 'Seconds that a handler may take to answer.', 'integer', '120'),
      query('startup_timeout', 'Seconds that a worker may take to load.', 'integer', '120'),
      query('initial_workers', 'Workers to begin with.', 'integer', '0'),
      query('synchronous', SYNCHRONOUS, 'boolean', 'true'),
      query('s3_sse_kms', 'Whether the archive lies in S3, encrypted with KMS.', 'boolean', 'false'),
    ],
    responses: {
      '200': status('The model is registered.'),
      ...ACCEPTED,
      ...PARTIAL,
      '400': error('A parameter or the archive cannot be used.'),
      '404': error('There is nothing at that URL.'),
      '409': error('This version is registered already.'),
      ...SERVER_ERROR,
    },
  }
}

/** The three operations that a model has with and without a version in the path. */
function modelOperations(prefix: string, path: Parameter[], subject: string): PathItem {
  return {
    get: {
      description: `Describes ${subject}.`,
      operationId: `${prefix}describeModel`,
      parameters: path,
      responses: {
        '200': json('One description for each version asked for.', modelDescription()),
        ...NOT_FOUND,
        ...SERVER_ERROR,
      },
    },
    put: {
      description: `Sets how many workers ${subject} has.`,
      operationId: `${prefix}setAutoScale`,
      parameters: [
        ...path,
        query('min_worker', 'Workers at least.', 'integer', '1'),
        query('max_worker', 'Workers at most.', 'integer', '1'),
        query('number_gpu', IGNORED, 'integer', '0'),
        query('synchronous', SYNCHRONOUS, 'boolean', 'false'),
        query('timeout', IGNORED, 'integer', '-1'),
      ],
      responses: {
        '200': status('The workers run.'),
        ...ACCEPTED,
        ...PARTIAL,
        '400': error('The numbers do not fit together.'),
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
        '200': status('It is removed.'),
        ...ACCEPTED,
        ...NOT_FOUND,
        '408': error('Its workers did not end in time.'),
        ...SERVER_ERROR,
      },
    },
  }
}
