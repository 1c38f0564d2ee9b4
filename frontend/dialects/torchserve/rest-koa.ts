import type { RouterContext } from '@koa/router'
import Koa from 'koa'
import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import type { Scope } from '../../auth/principal.ts'
import type { HttpCall } from '../../edge/http/http-call.ts'
import type { RestState } from '../../edge/http/app.ts'
import { audited, type AuditSubject } from '../../edge/http/audited.ts'
import { MODEL_API_HINT } from '../model-api-hint.ts'
import { commonHeaders, prettyJson } from './rest-reply.ts'

/** Codes of errors that a client causes when it leaves. */
const LEFT: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE'])

/** Koa needs Node's request and response objects. */
const calls = new WeakMap<IncomingMessage, HttpCall>()

/** A Koa app whose middleware may throw ServeErrors; it adds TorchServe's headers. */
export function createKoa(state: RestState): Koa {
  const app = new Koa()
  app.on('error', (error: unknown) => {
    // A client that leaves is nothing to warn of, and could fill the log.
    if (LEFT.has((error as NodeJS.ErrnoException).code ?? '')) return
    state.log.warn({ detail: String(error) }, 'A connection broke while it was answered')
  })
  app.use(answer)
  return app
}

/** Passes calls to a Koa app. */
export function koaHandler(koa: Koa): (call: HttpCall) => void {
  const handle = koa.callback()
  return (call) => {
    calls.set(call.req, call)
    void handle(call.req, call.res)
  }
}

export function callOf(ctx: Koa.Context): HttpCall {
  return calls.get(ctx.req)!
}

/**
 * The outermost middleware: errors to JSON, missing responses to 404, the common headers, and one metric per
 * response.
 */
const answer: Koa.Middleware = async (ctx, next) => {
  const call = callOf(ctx)
  const { state, reply } = call
  try {
    // Koa's router decodes segment by segment, TorchServe the whole path: `/models/a%2F1` is model a, version
    // 1.
    if (ctx.path.includes('%'))
      ctx.path = `/${call.target.segments.map((segment) => encodeURIComponent(segment)).join('/')}`
    await next()
    nameSpan(ctx, call)
    // The route answers by itself.
    if (ctx.respond === false) return
    if (ctx.status === 404) throw new ServeError('ROUTE_NOT_FOUND', ROUTE_NOT_FOUND)
  } catch (thrown) {
    ctx.respond = false
    if (!ctx.headerSent) call.fail(thrown)
    return
  }
  const headers = commonHeaders(call.requestId, reply.keepsAlive(ctx.status))
  state.cors?.addTo(headers, call.req)
  for (let i = 0; i < headers.length; i += 2) ctx.set(headers[i]!, headers[i + 1]!)
  call.answered(ctx.status)
}

/** The router knows the template of the path. */
function nameSpan(ctx: Koa.Context, { span }: HttpCall): void {
  const { _matchedRoute: route } = ctx as RouterContext
  if (span === undefined || typeof route !== 'string') return
  const template = route.replace(/:(\w+)/g, '{$1}')
  span.set(['http.route', template])
  span.rename(ctx.method, template)
}

const ROUTE_NOT_FOUND = 'Requested resource is not found, please refer to API document.'
const METHOD_NOT_ALLOWED = 'Requested method is not allowed, please refer to API document.'

export function methodNotAllowed(): ServeError {
  return new ServeError('METHOD_NOT_ALLOWED', METHOD_NOT_ALLOWED)
}

/** The model API is off: a header and the log say so, as the answer has TorchServe's words. */
export function apiDisabled(ctx: Koa.Context): ServeError {
  callOf(ctx).state.log.warn(
    {},
    `${ctx.method} ${ctx.path} was refused: the model API is off; ${MODEL_API_HINT}`,
  )
  ctx.set('x-hint', MODEL_API_HINT)
  return new ServeError('API_DISABLED', METHOD_NOT_ALLOWED)
}

/** Admits requests with the right token; without `kind`, all requests. */
export function admission(kind: Scope | undefined): Koa.Middleware {
  return (ctx, next) => {
    callOf(ctx).admit(kind)
    return next()
  }
}

/** A route that manages something: its calls are written in the audit log. `run` may add to the subject. */
export function managing(
  operation: string,
  run: (ctx: RouterContext, subject: AuditSubject) => void | Promise<void>,
) {
  return (ctx: RouterContext): Promise<void> => {
    const { model, version, workflow } = ctx.params as Record<string, string | undefined>
    const subject = { model, version, workflow }
    return audited(callOf(ctx), operation, subject, () => run(ctx, subject))
  }
}

/** Only who has the scope; also while the server stops. */
export function authorization(scope: Scope): Koa.Middleware {
  return (ctx, next) => {
    callOf(ctx).authorize(scope)
    return next()
  }
}

/** Sends TorchServe's JSON; its content type has no charset. */
export function answerJson(ctx: Koa.Context, status: number, value: unknown): void {
  ctx.status = status
  ctx.set('content-type', 'application/json')
  ctx.body = prettyJson(value)
}
