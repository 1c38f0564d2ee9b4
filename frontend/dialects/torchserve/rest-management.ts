import { Router, type RouterContext } from '@koa/router'
import { ServeError } from '../../../common/errors.ts'
import { pinOf } from '../../models/located-model.ts'
import type { OperationResult } from '../../models/operations.ts'
import { modelManagementDescription } from './api-description/documents.ts'
import { modelObject } from '../../models/readiness.ts'
import { auditedKey, type AuditSubject } from '../../edge/http/audited.ts'
import { answerJson, apiDisabled, callOf, managing } from './rest-koa.ts'
import { sendJson } from './rest-reply.ts'
import { type Params, queryOrJsonParams, queryParams, warned } from './rest-management-params.ts'
import type { RestState } from '../../edge/http/app.ts'

const STATUS: Readonly<Record<OperationResult['state'], number>> = { done: 200, accepted: 202, partial: 206 }

/** The management routes of models (TorchServe's ManagementRequestHandler.java). */
export function managementRouter(state: RestState): Router {
  const router = new Router()
  router.get('/models', (ctx) => list(ctx))
  router.post(
    '/models',
    managing('register model', (ctx, subject) => register(state, ctx, subject)),
  )
  for (const path of ['/models/:model', '/models/:model/:version']) {
    router.get(path, (ctx) => describe(ctx))
    router.put(path, managing('scale model', scale))
    router.delete(
      path,
      managing('unregister model', (ctx) => unregister(state, ctx)),
    )
  }
  const described = ['/models/:model', '/models/:model/:version', '/models/:model/:version/set-default']
  router.options(described, (ctx) => describeApi(ctx))
  const setDefault = (ctx: RouterContext): void => {
    const params = queryParams(ctx)
    params.checkNames()
    answer(ctx, params, callOf(ctx).models.setDefault(ctx.params['model']!, ctx.params['version']!))
  }
  router.put('/models/:model/:version/set-default', managing('set default version', setDefault))
  router.get('/v1/models/:model', (ctx) => readiness(ctx))
  return router
}

/** /token is separate, because it requires the API key instead of a management token. */
export function tokenRouter(state: RestState): Router {
  const router = new Router()
  router.all('/token', async (ctx) => {
    const kind = queryParams(ctx).text('type')
    const { authorization } = ctx.req.headers
    await auditedKey(callOf(ctx), `make ${kind ?? ''} token`, () =>
      state.authorizer.rotate(kind, authorization, ctx.req.socket),
    )
    ctx.status = 200
    ctx.set('content-type', 'application/json')
    ctx.body = '\n'
  })
  return router
}

function list(ctx: RouterContext): void {
  const params = queryParams(ctx)
  // TorchServe's documentation has both names.
  const token = params.integer('next_page_token') ?? params.integer('nextPageToken')
  const limit = params.integer('limit')
  params.checkNames()
  answerJson(ctx, 200, warned(ctx, params, callOf(ctx).models.list(limit, token)))
}

async function register(state: RestState, ctx: RouterContext, subject: AuditSubject): Promise<void> {
  if (!state.settings.enableModelApi) throw apiDisabled(ctx)
  const params = await queryOrJsonParams(ctx)
  const url = params.text('url')
  subject.url = url
  subject.model = params.text('model_name')
  if (url === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  const request = {
    url,
    modelName: params.text('model_name'),
    handler: params.text('handler'),
    runtime: params.text('runtime'),
    batchSize: params.positive('batch_size'),
    maxBatchDelay: params.notNegative('max_batch_delay'),
    responseTimeout: params.positive('response_timeout'),
    startupTimeout: params.notNegative('startup_timeout'),
    initialWorkers: params.notNegative('initial_workers'),
    synchronous: params.flag('synchronous') ?? true,
    s3SseKms: params.flag('s3_sse_kms') ?? false,
    sha256: pinOf(params.text('sha256')),
  }
  params.checkNames()
  answer(ctx, params, await callOf(ctx).models.register(request))
}

async function describe(ctx: RouterContext): Promise<void> {
  const params = queryParams(ctx)
  const customized = params.flag('customized') ?? false
  params.checkNames()
  const { model, version } = ctx.params as { model: string; version?: string }
  const call = callOf(ctx)
  const described = warned(ctx, params, await call.models.describe(model, version, customized))
  if (!customized || version === 'all') {
    answerJson(ctx, 200, described)
    return
  }
  // A handler makes this answer, and in TorchServe its phrase is empty, too.
  ctx.respond = false
  sendJson(call, 200, described, '')
}

/** The API description of managing this model. */
async function describeApi(ctx: RouterContext): Promise<void> {
  const model = ctx.params['model']!
  await callOf(ctx).models.describe(model, ctx.params['version'])
  answerJson(ctx, 200, modelManagementDescription(model))
}

async function scale(ctx: RouterContext, subject: AuditSubject): Promise<void> {
  const params = queryParams(ctx)
  subject.version ??= params.text('model_version')
  const request = {
    modelName: ctx.params['model']!,
    modelVersion: ctx.params['version'] ?? params.text('model_version'),
    minWorker: params.integer('min_worker'),
    maxWorker: params.integer('max_worker'),
    synchronous: params.flag('synchronous') ?? false,
  }
  params.checkNames('number_gpu', 'timeout')
  answer(ctx, params, await callOf(ctx).models.scale(request))
}

async function unregister(state: RestState, ctx: RouterContext): Promise<void> {
  if (!state.settings.enableModelApi) throw apiDisabled(ctx)
  const params = queryParams(ctx)
  params.checkNames('synchronous', 'timeout')
  const { model, version } = ctx.params as { model: string; version?: string }
  answer(ctx, params, await callOf(ctx).models.unregister(model, version))
}

/** KServe's readiness of one model. */
function readiness(ctx: RouterContext): void {
  answerJson(ctx, 200, modelObject(callOf(ctx).models.status(ctx.params['model']!)))
}

function answer(ctx: RouterContext, params: Params, result: OperationResult): void {
  const { state, message, warnings = [] } = result
  params.warnings.push(...warnings)
  answerJson(ctx, STATUS[state], warned(ctx, params, { status: message }))
}
