import { randomUUID } from 'node:crypto'
import Koa from 'koa'
import { ServeError } from '../../../common/errors.ts'
import type { TokenKind } from '../../auth/authorizer.ts'
import { admit } from './admit.ts'
import { answered } from './answered.ts'
import { prettyJson } from '../../dialects/torchserve/rest-errors.ts'
import { parseTarget } from './path.ts'
import { commonHeaders } from './reply-headers.ts'
import type { RestState } from './rest-state.ts'
import { sendError } from './send-error.ts'

/** A Koa app whose middlewares may throw ServeErrors and leave the headers of spec 1.1 to it. */
export function createKoa(state: RestState): Koa {
  const app = new Koa()
  app.on('error', (error: unknown) => {
    state.log.warn({ detail: String(error) }, 'A connection broke while it was answered')
  })
  app.use(answer(state))
  return app
}

/** Outermost: errors to JSON, no answer to 404, the common headers, one count per response. */
function answer(state: RestState): Koa.Middleware {
  return async (ctx, next) => {
    const requestId = randomUUID()
    try {
      normalisePath(ctx)
      await next()
      if (ctx.status === 404) {
        throw new ServeError('ROUTE_NOT_FOUND', ROUTE_NOT_FOUND)
      }
    } catch (thrown) {
      ctx.respond = false
      const error = ServeError.from(thrown)
      if (!ctx.headerSent) sendError(state, ctx.res, requestId, error)
      return
    }
    const keepAlive = ctx.status < 400 && !state.draining && ctx.res.shouldKeepAlive
    const headers = [...commonHeaders(requestId, keepAlive), ...state.cors]
    for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i]!, headers[i + 1]!)
    answered(state, ctx.res, ctx.status)
  }
}

const ROUTE_NOT_FOUND = 'Requested resource is not found, please refer to API document.'
const METHOD_NOT_ALLOWED = 'Requested method is not allowed, please refer to API document.'

export function methodNotAllowed(): ServeError {
  return new ServeError('METHOD_NOT_ALLOWED', METHOD_NOT_ALLOWED)
}

export function apiDisabled(): ServeError {
  return new ServeError('API_DISABLED', METHOD_NOT_ALLOWED)
}

/** Lets in who has the right token; without `kind`, everybody. */
export function admission(state: RestState, kind: TokenKind | undefined): Koa.Middleware {
  return (ctx, next) => {
    admit(state, ctx.req, kind)
    return next()
  }
}

/** The router decodes segment by segment, TorchServe the whole path: `/models/a%2F1` means model a, version 1. */
function normalisePath(ctx: Koa.Context): void {
  if (ctx.path.includes('%')) {
    ctx.path = `/${parseTarget(ctx.path).segments.map(encodeURIComponent).join('/')}`
  }
}

/** Answers with TorchServe's pretty JSON; its content type has no charset. */
export function answerJson(ctx: Koa.Context, status: number, value: unknown): void {
  ctx.status = status
  ctx.set('content-type', 'application/json')
  ctx.body = prettyJson(value)
}
