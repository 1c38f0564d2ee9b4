import type { Parameter, PathItem, Schema } from '../../../../common/openapi.ts'
import { error, json, object, SERVER_ERROR } from '../../openapi.ts'

const NOT_FOUND = { '404': error('The model or a version of the weights does not exist.') }

/** Weights between the versions of a model (docs/canary.md). */
export function trafficOperations(parameters: Parameter[]): PathItem {
  const answer = { '200': json('The weights as they are now.', description()) }
  return {
    get: {
      description: 'Describes the weights between the versions of a model.',
      operationId: 'describeTraffic',
      parameters,
      responses: { ...answer, ...NOT_FOUND, ...SERVER_ERROR },
    },
    put: {
      description:
        'Sets the weights by which requests without a version are sent to the versions of a model.',
      operationId: 'setTraffic',
      parameters,
      requestBody: {
        description: 'The weights, and what else decides.',
        content: { 'application/json': { schema: object(settings(), ['sticky']) } },
        required: true,
      },
      responses: {
        ...answer,
        '400': error('The body is not valid.'),
        ...NOT_FOUND,
        '409': error('A version with a weight has no worker that has loaded it.'),
        ...SERVER_ERROR,
      },
    },
    delete: {
      description: 'Ends the weights: the default version gets all requests without a version.',
      operationId: 'endTraffic',
      parameters,
      responses: { ...answer, ...NOT_FOUND, ...SERVER_ERROR },
    },
  }
}

function settings(): Record<string, Schema> {
  const sticky = object(
    {
      header: ['string', 'Requests with the same value of this header go to the same version.'],
      caller: ['boolean', 'true: those of the same API key, JWT subject or certificate do.'],
    },
    ['header', 'caller'],
  )
  const weights = { type: 'object', description: 'Whole numbers by version: {"1.0": 90, "2.0": 10}.' }
  return {
    weights,
    sticky: { ...sticky, description: 'Exactly one of the two.' },
  }
}

function description(): Schema {
  const version = object({
    modelVersion: ['string', 'The version.'],
    weight: ['integer', 'Its weight.'],
    share: ['number', 'Its share of the requests, 0 to 1.'],
    requests: ['integer', 'Requests that were sent to it by weight since the weights were set.'],
  })
  return object(
    {
      modelName: ['string', 'Name of the model.'],
      defaultVersion: [
        'string',
        'The version that gets all requests without a version if there are no weights.',
      ],
      ...settings(),
      versions: { type: 'array', items: version, description: 'Each version with a weight.' },
    },
    ['sticky'],
  )
}
