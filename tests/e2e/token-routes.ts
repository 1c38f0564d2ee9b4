import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Koa from 'koa'
import type { Router } from '@koa/router'
import type { OpenApi } from '../../common/openapi.ts'
import { REST_DIALECTS } from '../../frontend/dialects/index.ts'
import type { RestPath } from '../../frontend/dialects/rest-dialect.ts'
import { listenerDescription } from '../../frontend/dialects/torchserve/api-description/documents.ts'
import { INFERENCE_ROUTES } from '../../frontend/dialects/torchserve/rest-route.ts'
import { createSite } from '../../frontend/dialects/torchserve/rest-site.ts'
import { torchserve } from '../../frontend/dialects/torchserve/rest.ts'
import type { ListenerKind } from '../../frontend/edge/http/page-check.ts'
import type { RestState } from '../../frontend/edge/http/app.ts'
import { REPOSITORY } from '../support/server.ts'

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

/** Every route of a REST listener but the one that makes new keys. */
export function restRoutes(kind: ListenerKind): RestRoute[] {
  switch (kind) {
    case 'inference':
      return [...inferenceRoutes(), ...routed(kind, 'inference'), ...OPEN_ROUTES]
    case 'management':
      return [...managementRoutes(kind), ...played(), ...OPEN_ROUTES]
    case 'shared':
      return [...sharedRoutes(), ...played(), ...OPEN_ROUTES]
    case 'metrics':
      return [
        { method: 'GET', path: '/metrics', needs: 'nothing' },
        ...routed(kind, 'nothing'),
        ...OPEN_ROUTES,
      ]
  }
}

/** Each rotates a key: to be asked last. */
export function tokenRoutes(kind: ListenerKind): RestRoute[] {
  return routersOf(kind)
    .filter(({ path }) => path === TOKEN_PATH)
    .filter(({ method }) => ['GET', 'POST'].includes(method))
    .map(({ method, path }) => ({ method, path: `${path}?type=management`, needs: 'API' }))
}

const TOKEN_PATH = '/token'

/**
 * Every path of every dialect. One that takes any method is asked with OPTIONS too, which is another
 * answer.
 */
function inferenceRoutes(): RestRoute[] {
  const beyond = BEYOND_THE_TABLE.map((path): RestPath => ({ method: '*', path, token: 'inference' }))
  const paths = [...REST_DIALECTS.flatMap((dialect) => dialect.paths()), ...beyond]
  return paths.flatMap(({ method, path, token }) =>
    (method === '*' ? ['POST', 'OPTIONS'] : [method]).map((each): RestRoute => ({
      method: each,
      path: filled(path),
      needs: token ?? 'nothing',
    })),
  )
}

/** The inference API below the console, but for what needs no token. */
function played(): RestRoute[] {
  return inferenceRoutes()
    .filter(({ needs }) => needs !== 'nothing')
    .map((route) => ({ ...route, path: `${PLAYED}${route.path}` }))
}

const PLAYED = '/console/play'

/** Where both have a route, it is the management API's. */
function sharedRoutes(): RestRoute[] {
  const management = managementRoutes('shared')
  const taken = new Set(management.map(({ method, path }) => `${method} ${path}`))
  return [...inferenceRoutes().filter(({ method, path }) => !taken.has(`${method} ${path}`)), ...management]
}

/** From the routers of the app, and that a path which is none is not told without a token. */
function managementRoutes(kind: ListenerKind): RestRoute[] {
  const described = documented()
    .filter(({ path }) => isNotOpen(path))
    .map((route): RestRoute => ({ ...route, needs: 'management' }))
  return [
    ...routed(kind, 'management'),
    ...described,
    { method: 'GET', path: '/tokens', needs: 'management' },
    { method: 'GET', path: '/models/token', needs: 'management' },
  ]
}

/** Served without a token on every listener. */
const OPEN_ROUTES: RestRoute[] = [
  { method: 'OPTIONS', path: '/', needs: 'nothing' },
  { method: 'GET', path: '/api-description', needs: 'nothing' },
  { method: 'POST', path: '/api-description', needs: 'nothing' },
]

const OPEN_PATHS = [
  '/',
  '/api-description',
  '/console',
  '/console/play/health',
  '/health',
  '/metrics',
  TOKEN_PATH,
]

function isNotOpen(path: string): boolean {
  return !OPEN_PATHS.includes(path)
}

function routed(kind: ListenerKind, needs: Need): RestRoute[] {
  return routersOf(kind)
    .filter(({ path }) => path !== TOKEN_PATH)
    .map((route) => ({ ...route, needs }))
}

type Method = Pick<RestRoute, 'method' | 'path'>

/** The routes of every router that the site of a listener uses. */
function routersOf(kind: ListenerKind): Method[] {
  const routers: Router[] = []
  const use = Koa.prototype.use
  Koa.prototype.use = function (this: Koa, middleware: Koa.Middleware & { router?: Router }) {
    if (middleware.router !== undefined) routers.push(middleware.router)
    return use.call(this, middleware)
  } as typeof use
  try {
    // What the routers are built from is not needed to read their tables.
    createSite({ listener: kind, settings: {} } as unknown as RestState, REST_DIALECTS)
  } finally {
    Koa.prototype.use = use
  }
  if (kind !== 'inference' && routers.length === 0) throw new Error(`No router of ${kind} was seen`)
  return routers.flatMap((router) =>
    router.stack.flatMap(({ path, methods }) =>
      // Node's client does not speak CONNECT and TRACE to a server.
      methods
        .filter((method) => HTTP_METHODS.has(method))
        .map((method) => ({ method, path: filled(String(path)) })),
    ),
  )
}

const HTTP_METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
])

/** What the API description has of the management API. */
function documented(): Method[] {
  const { paths } = JSON.parse(listenerDescription('management', [])) as OpenApi
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => ({ method: method.toUpperCase(), path: filled(path) })),
  )
}

/** `/models/:model/{model_version}` with a real model and version. */
function filled(path: string): string {
  return path
    .replaceAll(/:model\b|\{model_name\}|:workflow\b|\{workflow_name\}/g, 'echo')
    .replaceAll(/:archive\b|\{archive_name\}/g, 'echo.mar')
    .replaceAll(/:version\b|\{model_version\}/g, '1.0')
    .replaceAll(/\*(\w+)/g, '$1')
}

function unique<T>(values: T[]): T[] {
  return [...new Set(values)]
}

/**
 * Paths that a route which nobody told this test about may have: each word that the server's code about
 * paths has, below each path that the tables know. None of them may do anything without a token.
 */
export function guessedPaths(kind: ListenerKind): string[] {
  const open = new Set([...OPEN_PATHS, ...restRoutes('metrics').map(({ path }) => path)])
  // Below the console are the paths of the inference API, asked there.
  const own = restRoutes(kind).filter(({ path }) => !path.startsWith(`${PLAYED}/`))
  const known = own.map(({ path }) => path.split('?', 1)[0]!)
  // The shared listener has the routes of two others, below each of which something is asked there.
  const paths = kind === 'shared' ? known.map((path) => path.slice(0, path.lastIndexOf('/'))) : known
  const prefixes = unique([...paths.flatMap(prefixesOf), ...(kind === 'inference' ? [] : [PLAYED])])
  const guesses = prefixes.flatMap((prefix) => WORDS.map((word) => `${prefix}/${word}`))
  // What stands behind /metrics there does not count.
  return unique(guesses).filter(
    (path) => !open.has(path) && !(kind === 'metrics' && /^\/metrics\b/.test(path)),
  )
}

/** `/a/b` has `` and `/a`, and is one itself. */
function prefixesOf(path: string): string[] {
  const segments = path.split('/').slice(1)
  return ['', ...segments.map((_segment, index) => `/${segments.slice(0, index + 1).join('/')}`)]
}

/** The rooms that see paths of requests; every other one gets names and bodies from them. */
const ROOMS = ['edge', 'dialects'].map((room) => join(REPOSITORY, 'frontend', room))

/** Texts in the code that takes requests apart. */
const WORDS = unique(
  ROOMS.flatMap((room) =>
    readdirSync(room, { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts'))
      .map((file) => readFileSync(join(room, file), 'utf8')),
  )
    .filter((code) => /\bsegments\b|\bnew Router\b|\.url\b/.test(code))
    .flatMap((code) => [...code.matchAll(/'\/?([a-z0-9][\w./-]*)'/g)].map(([, word]) => word!))
    .filter((word) => !word.endsWith('.ts') && !/^\d+$/.test(word)),
)
