import { Router } from '@koa/router'
import { ServeError } from '../../../common/errors.ts'
import { seesAll } from '../../auth/principal.ts'
import type { RestState } from '../../edge/http/rest-state.ts'
import { answerJson, exchangeOf } from './rest-koa.ts'
import { queryParams } from './rest-management-params.ts'

/** The effective configuration of the server; TorchServe has no such route. */
export function configurationRouter(state: RestState): Router {
  const router = new Router()
  router.get('/configuration', (ctx) => {
    queryParams(ctx).checkNames()
    if (!seesAll(exchangeOf(ctx).principal))
      throw new ServeError(
        'UNAUTHORIZED',
        'A key for some models cannot read the configuration, which covers all models. Use a key for all of them',
      )
    answerJson(ctx, 200, { settings: state.configuration() })
  })
  return router
}
