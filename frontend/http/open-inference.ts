import type Koa from 'koa'
import { isServerReady } from '../models/readiness.ts'
import { serverMetadata } from '../package-info.ts'
import { admit } from './admit.ts'
import { answerJson } from './koa-app.ts'
import { parseTarget } from './path.ts'
import type { RestState } from './rest-state.ts'

type Answer = readonly [status: number, body: object]

/** What the Open Inference Protocol adds to the inference API, by path; any method (spec 1.5). */
export const OPEN_INFERENCE_ROUTES: Readonly<Record<string, (state: RestState) => Answer | Promise<Answer>>> =
  {
    /** The misspelt key is TorchServe's [quirk]; the right one stands beside it. */
    '/v2': () => [200, { ...serverMetadata, extenstion: serverMetadata.extensions }],
    '/v2/health/live': () => [200, { live: true }],
    '/v2/health/ready': async ({ models }) => {
      const ready = await isServerReady(models)
      return [ready ? 200 : 503, { ready }]
    },
  }

const NO_VERSIONS: Answer = [501, { error: 'Model versioning is not yet supported.' }]

/** Serves these routes with the inference token, on whatever listener; passes every other path on. */
export function openInference(state: RestState): Koa.Middleware {
  return async (ctx, next) => {
    const { segments } = parseTarget(ctx.path)
    const path = `/${segments.join('/')}`
    const route = OPEN_INFERENCE_ROUTES[path]
    const isVersioned = segments.length >= 5 && segments[0] === 'v2' && path.includes('/versions')
    if (route === undefined && !isVersioned) {
      await next()
      return
    }
    admit(state, ctx.req, 'inference')
    answerJson(ctx, ...(route === undefined ? NO_VERSIONS : await route(state)))
  }
}
