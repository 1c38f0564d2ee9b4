import {
  error,
  json,
  object,
  pathParameter,
  query,
  SERVER_ERROR,
  type Operation,
  type PathItem,
  type Schema,
} from '../../openapi.ts'

const BINARY = { '*/*': { schema: { type: 'string', format: 'binary' } } }

/** `/` and `/api-description`, on every listener but that of the metrics. */
export const DESCRIPTION_PATHS: Readonly<Record<'/' | '/api-description', PathItem>> = {
  '/': { options: apiDescription('apiDescription') },
  '/api-description': { get: { ...apiDescription('api-description'), deprecated: true } },
}

/** Paths of the inference API. */
export const INFERENCE_PATHS: Readonly<Record<string, PathItem>> = {
  '/': DESCRIPTION_PATHS['/'],
  '/ping': {
    get: {
      description: 'Tells whether every model has the workers that it should have.',
      operationId: 'ping',
      parameters: [],
      responses: {
        '200': json('The state of the server.', object({ status: ['string', 'Healthy.'] })),
        ...SERVER_ERROR,
      },
    },
  },
  '/v1/models/{model_name}:predict': { post: predictions() },
  '/v2/models/{model_name}/infer': { post: predictions() },
  '/predictions/{model_name}': { post: predictions() },
  '/predictions/{model_name}/{model_version}': { post: versionPredictions() },
  '/api-description': DESCRIPTION_PATHS['/api-description'],
}

/** The one path of the metrics API. */
export const METRICS_PATHS: Readonly<Record<string, PathItem>> = {
  '/metrics': {
    get: {
      description: 'The metrics of the server, as Prometheus reads them.',
      operationId: 'metrics',
      parameters: [query('name[]', 'Only metrics of this name; may stand more than once.')],
      responses: {
        '200': {
          description: 'The metrics page.',
          content: { 'text/plain; version=0.0.4; charset=utf-8': { schema: metricsPage() } },
        },
        ...SERVER_ERROR,
      },
    },
  },
}

/** How a client asks one model. */
export function modelPaths(modelName: string): Record<string, PathItem> {
  const post = asking(`the model ${modelName}`, modelName)
  return {
    [`/prediction/${modelName}`]: { post },
    '/v1/models/{model_name}:predict': { post },
    '/v2/models/{model_name}/infer': { post },
  }
}

/** How a client asks one workflow. */
export function workflowPaths(name: string): Record<string, PathItem> {
  return { [`/wfpredict/${name}`]: { post: asking(`the workflow ${name}`, name) } }
}

function asking(what: string, operationId: string): Operation {
  return {
    description: `Asks ${what}.`,
    operationId,
    parameters: [],
    responses: { '200': { description: 'What the handler answered.' }, ...SERVER_ERROR },
  }
}

function predictions(): Operation {
  return {
    description: 'Asks the default version of a model.',
    operationId: 'predictions',
    parameters: [pathParameter('model_name', 'The model.')],
    requestBody: {
      description: 'Whatever the handler of the model takes.',
      content: BINARY,
      required: true,
    },
    responses: {
      '200': { description: 'Whatever the handler of the model gives.', content: BINARY },
      '404': error('There is no such model or version.'),
      ...SERVER_ERROR,
      '503': error('No worker can take the request.'),
    },
  }
}

function versionPredictions(): Operation {
  const operation = predictions()
  operation.description = 'Asks one version of a model.'
  operation.operationId = 'version_predictions'
  operation.parameters.push(pathParameter('model_version', 'The version of the model.'))
  return operation
}

function apiDescription(operationId: string): Operation {
  const fields = { openapi: { type: 'string' }, info: { type: 'object' }, paths: { type: 'object' } }
  return {
    description: 'This description of the API.',
    operationId,
    parameters: [],
    responses: { '200': json('An OpenAPI 3.0.1 document.', object(fields)), ...SERVER_ERROR },
  }
}

function metricsPage(): Schema {
  return object({
    '# HELP': ['string', 'What a metric means.'],
    '# TYPE': ['string', 'The type of a metric.'],
    metric: ['string', 'Its name, labels and value.'],
  })
}
