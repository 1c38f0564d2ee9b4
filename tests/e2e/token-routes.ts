import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Koa from 'koa'
import type { Router } from '@koa/router'
import {
  listenerDescription,
  type ListenerKind,
} from '../../frontend/dialects/torchserve/api-description/documents.ts'
import { OPENAI_PATHS } from '../../frontend/dialects/torchserve/api-description/openai-paths.ts'
import type { OpenApi } from '../../frontend/dialects/torchserve/api-description/openapi.ts'
import { INFERENCE_ROUTES } from '../../frontend/dialects/torchserve/rest-route.ts'
import {
  createInferenceApp,
  createManagementApp,
  createMetricsApp,
  createSharedApp,
  type RestDeps,
} from '../../frontend/edge/http/app.ts'
import { REPOSITORY } from '../support/server.ts'

export type Need = 'inference' | 'management' | 'API' | 'nothing'

export interface RestRoute {
  method: string
  path: string
  needs: Need
}

/** Paths of each first segment of the inference API; a segment without any fails the test. */
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

const APPS = {
  inference: createInferenceApp,
  management: createManagementApp,
  shared: createSharedApp,
  metrics: createMetricsApp,
}

/** Every route of a REST listener but the one that makes new keys. */
export function restRoutes(kind: ListenerKind): RestRoute[] {
  switch (kind) {
    case 'inference':
      return [...inferenceRoutes(), ...routed(kind, 'inference'), ...OPEN_ROUTES]
    case 'management':
      return [...managementRoutes(kind), ...OPEN_ROUTES]
    case 'shared':
      return [...inferenceRoutes(), ...managementRoutes(kind), ...OPEN_ROUTES]
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

/** All of them take any method, and OPTIONS is another answer. */
function inferenceRoutes(): RestRoute[] {
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
  return [...routes, ...openai, ...manages]
}

/** From the routers of the app, and that a path which is none is not told without a token. */
function managementRoutes(kind: ListenerKind): RestRoute[] {
  const described = documented('management')
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

const OPEN_PATHS = ['/', '/api-description', '/metrics', TOKEN_PATH]

function isNotOpen(path: string): boolean {
  return !OPEN_PATHS.includes(path)
}

function routed(kind: ListenerKind, needs: Need): RestRoute[] {
  return routersOf(kind)
    .filter(({ path }) => path !== TOKEN_PATH)
    .map((route) => ({ ...route, needs }))
}

type Method = Pick<RestRoute, 'method' | 'path'>

/** The routes of every router that the app of a listener uses, whoever adds it. */
function routersOf(kind: ListenerKind): Method[] {
  const routers: Router[] = []
  const use = Koa.prototype.use
  Koa.prototype.use = function (this: Koa, middleware: Koa.Middleware & { router?: Router }) {
    if (middleware.router !== undefined) routers.push(middleware.router)
    return use.call(this, middleware)
  } as typeof use
  try {
    // What the routers are built from is not needed to read their tables.
    APPS[kind]({ settings: {} } as RestDeps)
  } finally {
    Koa.prototype.use = use
  }
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

function documented(kind: 'inference' | 'management'): Method[] {
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
    .replaceAll(/\*(\w+)/g, '$1')
}

function unique<T>(values: T[]): T[] {
  return [...new Set(values)]
}

/**
 * Paths that a route which nobody told this test about may have: each word that the server's code about paths has, below each path that
 * the tables know. None of them may do anything without a token.
 */
export function guessedPaths(kind: ListenerKind): string[] {
  const open = new Set([...OPEN_PATHS, ...restRoutes('metrics').map(({ path }) => path)])
  const known = restRoutes(kind).map(({ path }) => path.split('?', 1)[0]!)
  const prefixes = unique(known.flatMap(prefixesOf))
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

/** Texts in the code that takes requests apart. */
const WORDS = unique(
  readdirSync(join(REPOSITORY, 'frontend'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => readFileSync(join(REPOSITORY, 'frontend', file), 'utf8'))
    .filter((code) => /\bsegments\b|\bnew Router\b|\.url\b/.test(code))
    .flatMap((code) => [...code.matchAll(/'\/?([a-z0-9][\w./-]*)'/g)].map(([, word]) => word!))
    .filter((word) => !word.endsWith('.ts') && !/^\d+$/.test(word)),
)
