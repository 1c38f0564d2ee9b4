import { Router } from '@koa/router'
import type { RestState } from '../../edge/http/app.ts'
import { answerJson, managing } from './rest-koa.ts'
import { queryParams } from './rest-management-params.ts'

/** Open requests and the effective configuration of the server; TorchServe has no such routes. */
export function serverRouter(state: RestState): Router {
  const router = new Router()
  router.delete(
    '/requests/:request',
    managing('cancel request', (ctx, subject) => {
      queryParams(ctx).checkNames()
      const id = (subject.request = ctx.params['request']!)
      subject.model = state.requests.cancel(id)
      answerJson(ctx, 200, { status: `Request ${id} was cancelled` })
    }),
  )
  router.get('/configuration', (ctx) => {
    queryParams(ctx).checkNames()
    answerJson(ctx, 200, { settings: state.configuration() })
  })
  return router
}
