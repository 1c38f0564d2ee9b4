import { Router, type RouterContext } from '@koa/router'
import { ServeError } from '../../../common/errors.ts'
import { pinOf } from '../../models/archive-rules.ts'
import type { OperationResult } from '../../models/operations.ts'
import { modelManagementDescription } from './api-description/documents.ts'
import { modelObject } from '../../models/model-object.ts'
import { answerJson, apiDisabled } from './rest-koa.ts'
import { queryOrJsonParams, queryParams } from './rest-management-params.ts'
import type { RestState } from '../../edge/http/rest-state.ts'

const STATUS: Readonly<Record<OperationResult['state'], number>> = { done: 200, accepted: 202, partial: 206 }

/** The management routes of models (TorchServe's ManagementRequestHandler.java). */
export function managementRouter(state: RestState): Router {
  const router = new Router()
  router.get('/models', (ctx) => list(state, ctx))
  router.post('/models', (ctx) => register(state, ctx))
  for (const path of ['/models/:model', '/models/:model/:version']) {
    router.get(path, (ctx) => describe(state, ctx))
    router.put(path, (ctx) => scale(state, ctx))
    router.delete(path, (ctx) => unregister(state, ctx))
  }
  const described = ['/models/:model', '/models/:model/:version', '/models/:model/:version/set-default']
  router.options(described, (ctx) => describeApi(state, ctx))
  router.put('/models/:model/:version/set-default', (ctx) => {
    answer(ctx, state.models.setDefault(ctx.params['model']!, ctx.params['version']!))
  })
  router.get('/v1/models/:model', (ctx) => readiness(state, ctx))
  return router
}

/** /token is separate, because it requires the API key instead of a management token. */
export function tokenRouter(state: RestState): Router {
  const router = new Router()
  router.all('/token', async (ctx) => {
    const kind = queryParams(ctx).text('type')
    await state.authorizer.rotate(kind, ctx.req.headers.authorization, ctx.req.socket)
    ctx.status = 200
    ctx.set('content-type', 'application/json')
    ctx.body = '\n'
  })
  return router
}

function list(state: RestState, ctx: RouterContext): void {
  const params = queryParams(ctx)
  answerJson(ctx, 200, state.models.list(params.integer('limit'), params.integer('next_page_token')))
}

async function register(state: RestState, ctx: RouterContext): Promise<void> {
  if (!state.settings.enableModelApi) throw apiDisabled()
  const params = await queryOrJsonParams(ctx)
  const url = params.text('url')
  if (url === undefined) throw new ServeError('INVALID_ARGUMENT', 'Parameter url is required.')
  const result = await state.models.register({
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
  })
  answer(ctx, result)
}

async function describe(state: RestState, ctx: RouterContext): Promise<void> {
  const customized = queryParams(ctx).flag('customized') ?? false
  answerJson(ctx, 200, await state.models.describe(ctx.params['model']!, ctx.params['version'], customized))
}

/** The API description of managing this model. */
async function describeApi(state: RestState, ctx: RouterContext): Promise<void> {
  const model = ctx.params['model']!
  await state.models.describe(model, ctx.params['version'])
  answerJson(ctx, 200, modelManagementDescription(model))
}

async function scale(state: RestState, ctx: RouterContext): Promise<void> {
  const params = queryParams(ctx)
  const result = await state.models.scale({
    modelName: ctx.params['model']!,
    modelVersion: ctx.params['version'] ?? params.text('model_version'),
    minWorker: params.integer('min_worker'),
    maxWorker: params.integer('max_worker'),
    synchronous: params.flag('synchronous') ?? false,
  })
  answer(ctx, result)
}

async function unregister(state: RestState, ctx: RouterContext): Promise<void> {
  if (!state.settings.enableModelApi) throw apiDisabled()
  answer(ctx, await state.models.unregister(ctx.params['model']!, ctx.params['version']))
}

/** KServe's readiness of one model. */
function readiness(state: RestState, ctx: RouterContext): void {
  answerJson(ctx, 200, modelObject(state.models.status(ctx.params['model']!)))
}

function answer(ctx: RouterContext, result: OperationResult): void {
  answerJson(ctx, STATUS[result.state], { status: result.message })
}
