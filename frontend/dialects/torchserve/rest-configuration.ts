import { Router } from '@koa/router'
import type { RestState } from '../../edge/http/rest-state.ts'
import { answerJson } from './rest-koa.ts'
import { queryParams } from './rest-management-params.ts'

/** The effective configuration of the server; TorchServe has no such route. */
export function configurationRouter(state: RestState): Router {
  const router = new Router()
  router.get('/configuration', (ctx) => {
    queryParams(ctx).checkNames()
    answerJson(ctx, 200, { settings: state.configuration() })
  })
  return router
}
