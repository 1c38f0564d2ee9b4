import type { ServiceDefinition } from '@grpc/grpc-js'
import type { Router } from '@koa/router'
import { listenerDescription } from '../../frontend/dialects/torchserve/api-description/documents.ts'
import { REST_DIALECTS } from '../../frontend/dialects/index.ts'
import type { OpenApi } from '../../frontend/dialects/openapi.ts'
import { torchserve } from '../../frontend/dialects/torchserve/rest.ts'
import { INFERENCE_ROUTES } from '../../frontend/dialects/torchserve/rest-route.ts'
import { MANAGEMENT_ROUTERS } from '../../frontend/dialects/torchserve/rest-site.ts'
import { tokenRouter } from '../../frontend/dialects/torchserve/rest-management.ts'
import type { TokenKind } from '../../frontend/auth/authorizer.ts'
import type { RestState } from '../../frontend/edge/http/rest-state.ts'
import { loadOpenInference, loadServices, type LoadedService } from '../../frontend/edge/grpc/definitions.ts'

export type Need = 'inference' | 'management' | 'API' | 'nothing'

export interface RestRoute {
  method: string
  path: string
  needs: Need
}

/** First segments that TorchServe's inference API knows and its list of paths does not. */
export const FORGOTTEN = [...INFERENCE_ROUTES.keys()].filter(
  (segment) => !torchserve.paths().some(({ path }) => path.split('/')[1] === segment),
)

/** What begins like a path of a dialect, or names no model that there is. */
const BEYOND_THE_TABLE = [
  '/ping/me',
  '/predictions/none',
  '/predictions/echo/1.0/a/path',
  '/invocations?model_name=echo',
  '/wfpredict/none',
  '/wfpredict/none/more',
]

/** Every route of every dialect. Those that take any method are asked with OPTIONS too, which is another answer. */
export function inferenceRoutes(): RestRoute[] {
  const paths: { method: string; path: string; token: TokenKind | undefined }[] = [
    ...REST_DIALECTS.flatMap((dialect) => dialect.paths()),
    ...BEYOND_THE_TABLE.map((path) => ({ method: '*', path, token: 'inference' as const })),
  ]
  const routes = paths.flatMap(({ method, path, token }) =>
    (method === '*' ? ['POST', 'OPTIONS'] : [method]).map((each): RestRoute => ({
      method: each,
      path: filled(path),
      needs: token ?? 'nothing',
    })),
  )
  return [...routes, ...OPEN_ROUTES]
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

/** Every route of one port for both; where both have one, it is the management API's. */
export function sharedRoutes(): RestRoute[] {
  const management = managementRoutes()
  const taken = new Set(management.map(({ method, path }) => `${method} ${path}`))
  return [...inferenceRoutes().filter(({ method, path }) => !taken.has(`${method} ${path}`)), ...management]
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

function documented(kind: 'management'): { method: string; path: string }[] {
  const { paths } = JSON.parse(listenerDescription(kind, [])) as OpenApi
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({ method: method.toUpperCase(), path: filled(path) })),
  )
}

/** `/models/:model/{model_version}` with a real model and version. */
function filled(path: string): string {
  return path
    .replaceAll(/:model\b|\{model_name\}|:workflow\b|\{workflow_name\}/g, 'echo')
    .replaceAll(/:version\b|\{model_version\}/g, '1.0')
}

export interface Rpc {
  path: string
  needs: Need
}

/** Every rpc of every service of a listener, from the .proto files. */
export function rpcs(listener: 'inference' | 'management'): Rpc[] {
  return servicesOf(listener).flatMap(({ name, definition }) =>
    Object.values(definition as ServiceDefinition<Record<string, never>>).map(
      ({ path }: { path: string }): Rpc => ({
        path,
        needs: name.startsWith('grpc.') ? 'nothing' : listener,
      }),
    ),
  )
}

/** In the order in which reflection lists them. */
export function servicesOf(listener: 'inference' | 'management'): LoadedService[] {
  const { inference, management, health, reflection, reflectionAlpha } = loadServices()
  const own = listener === 'inference' ? [inference, loadOpenInference()] : [management]
  return [...own, health, reflection, reflectionAlpha]
}
