import type { Router } from '@koa/router'
import { listenerDescription } from '../../frontend/dialects/torchserve/api-description/documents.ts'
import { OPENAI_PATHS } from '../../frontend/dialects/torchserve/api-description/openai-paths.ts'
import type { OpenApi } from '../../frontend/dialects/torchserve/api-description/openapi.ts'
import { INFERENCE_ROUTES } from '../../frontend/dialects/torchserve/rest-route.ts'
import { MANAGEMENT_ROUTERS } from '../../frontend/edge/http/app.ts'
import { tokenRouter } from '../../frontend/dialects/torchserve/rest-management.ts'
import type { RestState } from '../../frontend/edge/http/rest-state.ts'
import type { GrpcSettings } from '../../frontend/dialects/grpc-dialect.ts'
import { grpcServices } from '../../frontend/dialects/grpc-servers.ts'
import { rpcsOf, type ServiceFacts } from '../../frontend/edge/grpc/service.ts'

export type Need = 'inference' | 'management' | 'API' | 'nothing'

export interface RestRoute {
  method: string
  path: string
  needs: Need
}

/** Paths of each first segment of the inference API; a segment without any fails the test below. */
const INFERENCE_EXAMPLES: Record<string, string[]> = {
  predictions: [
    '/predictions/echo',
    '/predictions/echo/1.0',
    '/predictions/echo/1.0/a/path',
    '/predictions/none',
  ],
  explanations: ['/explanations/echo', '/explanations/echo/1.0'],
  invocations: ['/invocations', '/invocations?model_name=echo'],
  models: ['/models/echo/invoke'],
  wfpredict: ['/wfpredict/none', '/wfpredict/none/more'],
  v1: ['/v1/models/echo:predict', '/v1/models/echo:explain'],
  v2: ['/v2/models/echo/infer', '/v2/models/echo/explain', '/v2/models/echo/versions/1.0'],
}

/** Routes of the OpenAI API; OPTIONS there is a browser's question before a request, which has no token. */
const OPENAI_EXAMPLES = [
  '/v1/models',
  '/v1/chat/completions',
  '/v1/completions',
  '/v1/embeddings',
  '/openai/v1/models/echo',
  '/openai/v1/chat/completions',
  '/v2/models/echo/infer/chat/completions',
  '/v2/models/echo/versions/1.0/infer_stream/embeddings',
]

/** Of these OPENAI_EXAMPLES has what is to be asked. */
const OPENAI_DOCUMENTED: ReadonlySet<string> = new Set(Object.keys(OPENAI_PATHS).map(filled))

/** Every kind of route of the Open Inference Protocol. */
const OPEN_INFERENCE_EXAMPLES = [
  '/v2',
  '/v2/health/live',
  '/v2/health/ready',
  '/v2/models',
  '/v2/models/echo',
  '/v2/models/echo/ready',
  '/v2/models/echo/versions/1.0/infer',
  '/v2/models/echo/infer_stream',
  '/v2/models/echo/generate',
  '/v2/models/echo/generate_stream',
  '/v2/repository/index',
]

/** First segments that the inference API knows and the examples above do not. */
export const FORGOTTEN = [...INFERENCE_ROUTES.keys()].filter((segment) => !(segment in INFERENCE_EXAMPLES))

const BEYOND_THE_TABLE = ['/ping', '/ping/me', '/echo/predict', '/echo/1.0/predict']

/** Every route of the inference API; all take any method, and OPTIONS is another answer. */
export function inferenceRoutes(): RestRoute[] {
  const paths = [
    ...Object.values(INFERENCE_EXAMPLES).flat(),
    ...BEYOND_THE_TABLE,
    ...OPEN_INFERENCE_EXAMPLES,
    ...documented('inference').map(({ path }) => path),
  ].filter((path) => !OPENAI_DOCUMENTED.has(path))
  const routes = unique(paths.filter(isNotOpen)).flatMap((path) =>
    ['POST', 'OPTIONS'].map((method): RestRoute => ({ method, path, needs: 'inference' })),
  )
  const openai = OPENAI_EXAMPLES.map((path): RestRoute => ({ method: 'POST', path, needs: 'inference' }))
  const manages = ['load', 'unload'].map((what): RestRoute => ({
    method: 'POST',
    path: `/v2/repository/models/none/${what}`,
    needs: 'management',
  }))
  return [...routes, ...openai, ...manages, ...OPEN_ROUTES]
}

/** Every route of the management API, from its routers, and that a path which is none is not told without a token. */
export function managementRoutes(): RestRoute[] {
  const routes = [
    ...MANAGEMENT_ROUTERS.flatMap((router) => routed(router(NO_STATE))),
    ...documented('management'),
  ]
  return [
    ...routes
      .filter(({ path }) => isNotOpen(path))
      .map((route): RestRoute => ({ ...route, needs: 'management' })),
    { method: 'GET', path: '/tokens', needs: 'management' },
    { method: 'GET', path: '/models/token', needs: 'management' },
    ...OPEN_ROUTES,
  ]
}

/** Each rotates a key: to be asked last. */
export function tokenRoutes(): RestRoute[] {
  return routed(tokenRouter(NO_STATE))
    .filter(({ method }) => ['GET', 'POST'].includes(method))
    .map(({ method, path }) => ({ method, path: `${path}?type=management`, needs: 'API' }))
}

export function metricsRoutes(): RestRoute[] {
  return [{ method: 'GET', path: '/metrics', needs: 'nothing' }, ...OPEN_ROUTES]
}

/** Served without a token on every listener. */
const OPEN_ROUTES: RestRoute[] = [
  { method: 'OPTIONS', path: '/', needs: 'nothing' },
  { method: 'GET', path: '/api-description', needs: 'nothing' },
  { method: 'POST', path: '/api-description', needs: 'nothing' },
]

function isNotOpen(path: string): boolean {
  return path !== '/' && path !== '/api-description' && path !== '/metrics'
}

/** What the routers are built from is not needed to read their tables. */
const NO_STATE = {} as RestState

function routed(router: Router): { method: string; path: string }[] {
  return router.stack.flatMap(({ path, methods }) =>
    methods.map((method) => ({ method, path: filled(String(path)) })),
  )
}

function documented(kind: 'inference' | 'management'): { method: string; path: string }[] {
  const { paths } = JSON.parse(listenerDescription(kind)) as OpenApi
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({ method: method.toUpperCase(), path: filled(path) })),
  )
}

/** `/models/:model/{model_version}` with a real model and version. */
function filled(path: string): string {
  return path
    .replaceAll(/:model\b|\{model_name\}|:workflow\b/g, 'echo')
    .replaceAll(/:version\b|\{model_version\}/g, '1.0')
}

function unique(values: string[]): string[] {
  return [...new Set(values)]
}

export interface Rpc {
  path: string
  needs: Need
}

/** Every rpc of every service of a listener. */
export function rpcs(listener: 'inference' | 'management'): Rpc[] {
  return rpcsOf(servicesOf(listener)).map(({ path, token }) => ({ path, needs: token ?? 'nothing' }))
}

/** In the order in which reflection lists them. */
export function servicesOf(listener: 'inference' | 'management'): ServiceFacts[] {
  return grpcServices(listener, { openInferenceProtocol: true } as GrpcSettings)
}
