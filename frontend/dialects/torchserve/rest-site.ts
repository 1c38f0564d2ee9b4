import { Router, type RouterContext } from '@koa/router'
import type Koa from 'koa'
import type { HttpCall } from '../../edge/http/http-call.ts'
import { servesInference, servesManagement } from '../../edge/http/page-check.ts'
import type { RestState } from '../../edge/http/app.ts'
import type { RestDialect } from '../rest-dialect.ts'
import { wantsPage, WELCOME_HEADERS, welcomePage } from '../welcome-page.ts'
import { listenerDescription } from './api-description/documents.ts'
import { admission, authorization, callOf, createKoa, koaHandler, methodNotAllowed } from './rest-koa.ts'
import { managementRouter, tokenRouter } from './rest-management.ts'
import { consolePages } from './rest-console.ts'
import { eventRouter, serverRouter } from './rest-server.ts'
import { trafficRouter } from './rest-traffic.ts'
import { workflowRouter } from './rest-workflows.ts'

/** The dependencies of the management API; all its routes require the management token. */
const MANAGEMENT_ROUTERS = [
  trafficRouter,
  managementRouter,
  workflowRouter,
  serverRouter,
  eventRouter,
] as const

/**
 * TorchServe's routes besides inference, on Koa: management, metrics and the API description, which includes
 * the paths of `dialects` where the listener speaks them. All other paths are 404.
 */
export function createSite(state: RestState, dialects: readonly RestDialect[]): (call: HttpCall) => void {
  const koa = createKoa(state)
  const paths = dialects.flatMap((dialect) => dialect.paths())
  const hasConsole = state.settings.enableConsole && servesManagement(state.listener)
  koa.use(apiDescription(listenerDescription(state.listener, servesInference(state.listener) ? paths : [])))
  if (hasConsole) koa.use(consolePages())
  if (state.listener === 'metrics') {
    if (state.settings.metricsRequireToken) koa.use(authorization('metrics'))
    koa.use(metricsRouter(state).routes())
  } else if (state.listener === 'inference') koa.use(admission('inference'))
  else useManagement(koa, state)
  return koaHandler(koa)
}

function useManagement(koa: Koa, state: RestState): void {
  // Before the limit on other bodies.
  koa.use(admission(undefined)).use(tokenRouter(state).routes()).use(admission('management'))
  for (const router of MANAGEMENT_ROUTERS) koa.use(router(state).routes())
  koa.use(wrongMethod)
}

/** After the routers: a router knows the path, but not with this method. */
const wrongMethod: Koa.Middleware = (ctx) => {
  const { matched } = ctx as RouterContext
  if (matched !== undefined && matched.length > 0) throw methodNotAllowed()
}

/**
 * OPTIONS on `/`, and any method on `/api-description`; no token is required. A browser that opens `/` gets a
 * page with links; anything else on `/` is 405.
 */
function apiDescription(document: string): Koa.Middleware {
  return (ctx, next) => {
    const call = callOf(ctx)
    const { segments } = call.target
    const isDescription = segments.length === 1 && segments[0] === 'api-description'
    if (segments.length > 0 && !isDescription) return next()
    call.admit(undefined)
    if (!isDescription && wantsPage(ctx.method, ctx.get('accept'))) {
      for (const [name, value] of WELCOME_HEADERS) ctx.set(name, value)
      ctx.body = welcomePage(call)
      return undefined
    }
    if (!isDescription && ctx.method !== 'OPTIONS') throw methodNotAllowed()
    ctx.status = 200
    ctx.set('content-type', 'application/json')
    ctx.body = document
    return undefined
  }
}

function metricsRouter({ metrics }: RestState): Router {
  const router = new Router()
  router.all(['/metrics', '/metrics/*rest'], (ctx) => {
    const page = metrics.page(new URLSearchParams(ctx.querystring).getAll('name[]'))
    ctx.set('content-type', page.contentType)
    ctx.body = page.body
    ctx.status = 200
  })
  return router
}
