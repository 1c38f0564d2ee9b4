import {
  createApp,
  createState,
  offer,
  type RestApp,
  type RestDeps,
  type RestState,
} from '../edge/http/app.ts'
import type { HttpCall } from '../edge/http/http-call.ts'
import { type ListenerKind, servesInference, servesManagement } from '../edge/http/page-check.ts'
import { REST_DIALECTS } from './index.ts'
import type { RestDialect } from './rest-dialect.ts'
import { PathTable } from './path-table.ts'
import { torchserve } from './torchserve/rest.ts'
import { listenerErrors } from './torchserve/rest-errors.ts'
import { ServeError } from '../../common/errors.ts'

/** The inference API: all dialects, and TorchServe's API description. */
export function createInferenceApp(deps: RestDeps, dialects = REST_DIALECTS): RestApp {
  return create(deps, 'inference', dialects)
}

/** The management API: models, workflows and tokens. */
export function createManagementApp(deps: RestDeps, dialects = REST_DIALECTS): RestApp {
  return create(deps, 'management', dialects)
}

/** Inference and management on one port; each route requires its own kind of token. */
export function createSharedApp(deps: RestDeps, dialects = REST_DIALECTS): RestApp {
  return create(deps, 'shared', dialects)
}

/** /metrics, without a token. */
export function createMetricsApp(deps: RestDeps, dialects = REST_DIALECTS): RestApp {
  return create(deps, 'metrics', dialects)
}

/** TorchServe's site handles what no dialect takes, with TorchServe's errors. */
function create(deps: RestDeps, kind: ListenerKind, dialects: readonly RestDialect[]): RestApp {
  const spoken = servesInference(kind) ? dialects : []
  const played = deps.settings.enableConsole && servesManagement(kind) ? [playground(dialects)] : []
  const named = [...dialects, torchserve, ...played]
  const table = new PathTable(named.flatMap((dialect) => dialect.paths()).map(({ path }) => [path, path]))
  const routes = deps.tracing && { of: (segments: readonly string[]) => table.find(segments)?.value }
  const state = createState(deps, kind, listenerErrors(dialects), routes)
  return createApp(state, [...spoken, ...played], siteOf(state, dialects))
}

/** TorchServe's site, read with the first request for it: predictions need no Koa. */
function siteOf(state: RestState, dialects: readonly RestDialect[]): (call: HttpCall) => void {
  let site: Promise<(call: HttpCall) => void> | undefined
  return (call) => {
    site ??= import('./torchserve/rest-site.ts').then(({ createSite }) => createSite(state, dialects))
    site.then((answer) => answer(call)).catch((thrown: unknown) => call.fail(thrown))
  }
}

const PREFIX = ['console', 'play'] as const

/**
 * The inference API below /console/play on a listener that manages: the console's page may ask only the
 * server that it came from, and inference usually has another port. Requests are authorized, limited and
 * answered as on the inference port. What no dialect takes is 404, so no path leads to the management API.
 */
export function playground(dialects: readonly RestDialect[]): RestDialect {
  return {
    name: 'playground',
    route: ({ target: { segments } }) => PREFIX.every((name, index) => segments[index] === name) || undefined,
    answer(call) {
      call.enter(PREFIX.length)
      if (offer(call, dialects)) return
      call.admit('inference')
      throw new ServeError('ROUTE_NOT_FOUND', notThere(call))
    },
    paths: () =>
      dialects
        .flatMap((dialect) => dialect.paths())
        .filter(({ token }) => token !== undefined)
        .map(({ method, path, token }) => ({ method, path: `/${PREFIX.join('/')}${path}`, token })),
  }
}

function notThere({ target }: HttpCall): string {
  return `The inference API has no path /${target.segments.join('/').slice(0, 200)}`
}
