import { Router, type RouterContext } from '@koa/router'
import { ServeError } from '../../../common/errors.ts'
import { pinOf } from '../../models/archive-rules.ts'
import { answerJson } from './rest-koa.ts'
import { queryOrJsonParams, queryParams } from './rest-management-params.ts'
import type { RestState } from '../../edge/http/rest-state.ts'

/** The management routes of workflows (TorchServe's WorkflowMgmtRequestHandler.java). */
export function workflowRouter(state: RestState): Router {
  const router = new Router()
  router.get('/workflows', (ctx) => {
    const params = queryParams(ctx)
    answerJson(ctx, 200, state.workflows.list(params.integer('limit'), params.integer('next_page_token')))
  })
  router.post('/workflows', (ctx) => register(state, ctx))
  router.get('/workflows/:workflow', (ctx) => {
    answerJson(ctx, 200, state.workflows.describe(ctx.params['workflow']!))
  })
  router.delete('/workflows/:workflow', async (ctx) => {
    answerJson(ctx, 200, { status: await state.workflows.unregister(ctx.params['workflow']!) })
  })
  return router
}

/** A workflow archive contains code, like a model archive, so the same key allows it. */
async function register(state: RestState, ctx: RouterContext): Promise<void> {
  if (!state.settings.enableModelApi)
    throw new ServeError('INVALID_ARGUMENT', 'Registering new workflows is disabled.')
  const params = await queryOrJsonParams(ctx)
  const url = params.text('url')
  if (url === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  const status = await state.workflows.register({
    url,
    workflowName: params.text('workflow_name') || undefined,
    responseTimeout: params.positive('response_timeout'),
    startupTimeout: params.positive('startup_timeout'),
    s3SseKms: params.flag('s3_sse_kms'),
    sha256: pinOf(params.text('sha256')),
  })
  answerJson(ctx, 200, { status })
}
