import type Koa from 'koa'
import { admit } from '../../../edge/http/admit.ts'
import { methodNotAllowed } from '../../../edge/http/koa-app.ts'
import { parseTarget } from '../../../edge/http/path.ts'
import type { RestState } from '../../../edge/http/rest-state.ts'
import { listenerDescription, type ListenerKind } from './documents.ts'

/** OPTIONS on `/`, and any method on `/api-description`; no token is asked for. Any other method on `/` is refused. */
export function apiDescription(state: RestState, kind: ListenerKind): Koa.Middleware {
  return (ctx, next) => {
    const { segments } = parseTarget(ctx.path)
    const isDescription = segments.length === 1 && segments[0] === 'api-description'
    if (segments.length > 0 && !isDescription) return next()
    admit(state, ctx.req, undefined)
    if (!isDescription && ctx.method !== 'OPTIONS') throw methodNotAllowed()
    ctx.status = 200
    ctx.set('content-type', 'application/json')
    ctx.body = listenerDescription(kind)
    return undefined
  }
}
