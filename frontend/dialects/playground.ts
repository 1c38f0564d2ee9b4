import { ServeError } from '../../common/errors.ts'
import { offer } from '../edge/http/app.ts'
import type { HttpCall } from '../edge/http/http-call.ts'
import type { RestDialect } from './rest-dialect.ts'

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
