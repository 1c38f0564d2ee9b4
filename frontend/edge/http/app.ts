import { Router, type RouterContext } from '@koa/router'
import type { RequestListener } from 'node:http'
import type Koa from 'koa'
import type { ListenerKind } from '../../dialects/torchserve/api-description/documents.ts'
import { apiDescription } from '../../dialects/torchserve/api-description/route.ts'
import { handleInference } from '../../dialects/torchserve/rest-inference.ts'
import { handleOpenAI } from '../../dialects/openai/rest.ts'
import { admission, createKoa, methodNotAllowed } from './koa-app.ts'
import { managementRouter, tokenRouter } from '../../dialects/torchserve/rest-management.ts'
import { timed } from './answered.ts'
import { workflowRouter } from '../../dialects/torchserve/rest-workflows.ts'
import { createState, type RestDeps, type RestState } from './rest-state.ts'

export type { RestDeps } from './rest-state.ts'

/** What one listener serves. */
export interface RestApp {
  readonly listener: RequestListener
  readonly state: RestState
  /** New requests are answered 503 from now on, and no connection is kept. */
  beginDrain(): void
}

/** The inference API: /ping, /predictions and the other paths that predict (spec 1.5). */
export function createInferenceApp(deps: RestDeps): RestApp {
  const state = createState(deps)
  const koa = createKoa(state)
  koa.use(apiDescription(state, 'inference'))
  koa.use(admission(state, 'inference'))
  return inferenceFirst(state, koa)
}

/** The management API: models and tokens (spec 1.8). */
export function createManagementApp(deps: RestDeps): RestApp {
  const state = createState(deps)
  return restApp(state, listenerOf(managementKoa(state, 'management')))
}

/** Inference and management on one port; each route asks for its own kind of token. */
export function createSharedApp(deps: RestDeps): RestApp {
  const state = createState(deps)
  return inferenceFirst(state, managementKoa(state, 'shared'), true)
}

/** /metrics, for everybody (spec 1.9). */
export function createMetricsApp(deps: RestDeps): RestApp {
  const state = createState(deps)
  const koa = createKoa(state)
  const router = new Router()
  router.all(['/metrics', '/metrics/*rest'], (ctx) => {
    const names = new URLSearchParams(ctx.querystring).getAll('name[]')
    const page = state.metrics.page(names)
    ctx.set('content-type', page.contentType)
    ctx.body = page.text
    ctx.status = 200
  })
  koa.use(apiDescription(state, 'metrics')).use(router.routes())
  return restApp(state, listenerOf(koa))
}

/** What the management API is made of; all of it asks for the management token. */
export const MANAGEMENT_ROUTERS = [managementRouter, workflowRouter] as const

function managementKoa(state: RestState, kind: ListenerKind): Koa {
  const koa = createKoa(state)
  const token = tokenRouter(state)
  koa.use(apiDescription(state, kind))
  koa.use(admission(state, undefined)).use(token.routes()).use(admission(state, 'management'))
  for (const router of MANAGEMENT_ROUTERS) koa.use(router(state).routes())
  koa.use(wrongMethod)
  return koa
}

/** After the routers: one knows the path, but not with this method. */
const wrongMethod: Koa.Middleware = (ctx) => {
  const { matched } = ctx as RouterContext
  if (matched !== undefined && matched.length > 0) throw methodNotAllowed()
}

/** The paths that predict do not pass through Koa's middlewares, which would cost them a fifth of their time. */
function inferenceFirst(state: RestState, koa: Koa, shared = false): RestApp {
  const others = listenerOf(koa)
  return restApp(state, (req, res) => {
    if (!handleInference(state, req, res) && !handleOpenAI(state, req, res, shared)) others(req, res)
  })
}

function listenerOf(koa: Koa): RequestListener {
  const handle = koa.callback()
  return (req, res) => void handle(req, res)
}

function restApp(state: RestState, listener: RequestListener): RestApp {
  return {
    listener: state.accessLog === undefined ? listener : timed(listener),
    state,
    beginDrain: () => {
      state.draining = true
    },
  }
}
