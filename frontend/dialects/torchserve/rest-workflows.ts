import { Router, type RouterContext } from '@koa/router'
import { ServeError } from '../../../common/errors.ts'
import type { AuditSubject } from '../../edge/http/audited.ts'
import { pinOf } from '../../models/located-model.ts'
import { answerJson, callOf, managing } from './rest-koa.ts'
import { queryOrJsonParams, queryParams, warned } from './rest-management-params.ts'
import type { RestState } from '../../edge/http/app.ts'

/** The management routes of workflows (TorchServe's WorkflowMgmtRequestHandler.java). */
export function workflowRouter(state: RestState): Router {
  const router = new Router()
  router.get('/workflows', (ctx) => {
    const params = queryParams(ctx)
    const limit = params.integer('limit')
    const token = params.integer('next_page_token')
    params.checkNames()
    answerJson(ctx, 200, warned(ctx, params, callOf(ctx).workflows.list(limit, token)))
  })
  router.post(
    '/workflows',
    managing('register workflow', (ctx, subject) => register(state, ctx, subject)),
  )
  router.get('/workflows/:workflow', (ctx) => {
    answerJson(ctx, 200, callOf(ctx).workflows.describe(ctx.params['workflow']!))
  })
  const unregister = async (ctx: RouterContext): Promise<void> => {
    answerJson(ctx, 200, { status: await callOf(ctx).workflows.unregister(ctx.params['workflow']!) })
  }
  router.delete('/workflows/:workflow', managing('unregister workflow', unregister))
  return router
}

/** A workflow archive contains code, like a model archive, so the same key allows it. */
async function register(state: RestState, ctx: RouterContext, subject: AuditSubject): Promise<void> {
  if (!state.settings.enableModelApi)
    throw new ServeError('INVALID_ARGUMENT', 'Registering new workflows is disabled.')
  const params = await queryOrJsonParams(ctx)
  const url = params.text('url')
  subject.url = url
  subject.workflow = params.text('workflow_name')
  if (url === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  const request = {
    url,
    workflowName: params.text('workflow_name') || undefined,
    responseTimeout: params.positive('response_timeout'),
    startupTimeout: params.positive('startup_timeout'),
    s3SseKms: params.flag('s3_sse_kms'),
    sha256: pinOf(params.text('sha256')),
  }
  params.checkNames('synchronous')
  const status = await callOf(ctx).workflows.register(request)
  answerJson(ctx, 200, warned(ctx, params, { status }))
}
