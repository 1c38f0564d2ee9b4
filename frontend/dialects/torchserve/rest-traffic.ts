import { Router, type RouterContext } from '@koa/router'
import { tryParseJson } from '../../../common/exact-json.ts'
import { parseTraffic } from '../../config/traffic-settings.ts'
import type { AuditSubject } from '../../edge/http/audited.ts'
import { modelManagementDescription } from './api-description/documents.ts'
import { answerJson, callOf, managing } from './rest-koa.ts'
import { boundedBody, queryParams, warned } from './rest-management-params.ts'

const PATH = '/models/:model/traffic'

/**
 * Weights between the versions of a model, which TorchServe does not have (docs/canary.md). To be asked
 * before the routes of versions, because `traffic` stands where a version stands in their paths.
 */
export function trafficRouter(): Router {
  const router = new Router()
  router.get(PATH, (ctx) => answer(ctx, trafficOf(ctx).describe(modelOf(ctx))))
  router.put(PATH, managing('set traffic', set))
  router.delete(
    PATH,
    managing('end traffic', async (ctx) => answer(ctx, await trafficOf(ctx).clear(modelOf(ctx)))),
  )
  router.options(PATH, async (ctx) => {
    await callOf(ctx).models.describe(modelOf(ctx))
    answerJson(ctx, 200, modelManagementDescription(modelOf(ctx)))
  })
  return router
}

/** Whatever its content type says: the body is always JSON. */
async function set(ctx: RouterContext, subject: AuditSubject): Promise<void> {
  const settings = parseTraffic(tryParseJson(await boundedBody(ctx)))
  subject.detail = JSON.stringify(settings.weights).slice(0, MAX_TOLD)
  answer(ctx, await trafficOf(ctx).set(modelOf(ctx), settings))
}

/** Characters of a client's weights in the audit log. */
const MAX_TOLD = 500

function trafficOf(ctx: RouterContext) {
  return callOf(ctx).models.traffic
}

function modelOf(ctx: RouterContext): string {
  return ctx.params['model']!
}

function answer(ctx: RouterContext, value: object): void {
  const params = queryParams(ctx)
  params.checkNames()
  answerJson(ctx, 200, warned(ctx, params, value))
}
