import type { Operation, PathItem, Schema } from '../../../../common/openapi.ts'
import { error, json, object, pathParameter, query, SERVER_ERROR } from '../../openapi.ts'

/** The group of what every port has, whichever API it is for. */
const OF_EVERY_PORT = ['Server']

const BINARY = { '*/*': { schema: { type: 'string', format: 'binary' } } }

/** `/` and `/api-description`, on every listener except metrics. */
export const DESCRIPTION_PATHS: Readonly<Record<'/' | '/api-description', PathItem>> = {
  '/': { options: apiDescription('apiDescription') },
  '/api-description': { get: { ...apiDescription('api-description'), deprecated: true } },
}

/** Paths of the inference API. */
export const INFERENCE_PATHS: Readonly<Record<string, PathItem>> = {
  '/': DESCRIPTION_PATHS['/'],
  '/ping': {
    get: {
      description: 'Reports whether every model has its minimum number of workers.',
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
      tags: OF_EVERY_PORT,
      description: 'Returns the metrics of the server in the Prometheus text format.',
      operationId: 'metrics',
      parameters: [query('name[]', 'Name of a metric to return; may be repeated.')],
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

/** How to call one model. */
export function modelPaths(modelName: string): Record<string, PathItem> {
  const post = asking(`the model ${modelName}`, modelName)
  return {
    [`/prediction/${modelName}`]: { post },
    '/v1/models/{model_name}:predict': { post },
    '/v2/models/{model_name}/infer': { post },
  }
}

/** How to call one workflow. */
export function workflowPaths(name: string): Record<string, PathItem> {
  return { [`/wfpredict/${name}`]: { post: asking(`the workflow ${name}`, name) } }
}

function asking(what: string, operationId: string): Operation {
  return {
    description: `Sends a request to ${what}.`,
    operationId,
    parameters: [],
    responses: { '200': { description: 'The response of the handler.' }, ...SERVER_ERROR },
  }
}

function predictions(): Operation {
  return {
    description: 'Sends a request to the default version of a model.',
    operationId: 'predictions',
    parameters: [pathParameter('model_name', 'Name of the model.')],
    requestBody: {
      description: 'The input, in the format that the handler expects.',
      content: BINARY,
      required: true,
    },
    responses: {
      '200': { description: 'The response of the handler.', content: BINARY },
      '404': error('The model or version does not exist.'),
      ...SERVER_ERROR,
      '503': error('No worker is available for the request.'),
    },
  }
}

function versionPredictions(): Operation {
  const operation = predictions()
  operation.description = 'Sends a request to one version of a model.'
  operation.operationId = 'version_predictions'
  operation.parameters.push(pathParameter('model_version', 'Version of the model.'))
  return operation
}

function apiDescription(operationId: string): Operation {
  const fields = { openapi: { type: 'string' }, info: { type: 'object' }, paths: { type: 'object' } }
  return {
    tags: OF_EVERY_PORT,
    description: 'Returns this description of the API.',
    operationId,
    parameters: [],
    responses: { '200': json('An OpenAPI 3.0.1 document.', object(fields)), ...SERVER_ERROR },
  }
}

function metricsPage(): Schema {
  return object({
    '# HELP': ['string', 'Description of a metric.'],
    '# TYPE': ['string', 'Type of a metric.'],
    metric: ['string', 'Name, labels and value of a sample.'],
  })
}
