import { ServeError } from '../../common/errors.ts'
import type { Exchange } from '../edge/http/exchange.ts'
import type { RestDialect } from './rest-dialect.ts'

const PREFIX = ['console', 'play'] as const

/**
 * The inference API below /console/play on a listener that manages: the console's page may ask only the
 * server that it came from, and inference usually has another port. Requests are authorized, limited and
 * answered as on the inference port. What no dialect takes is 404, so no path leads to the management API.
 */
export function playground(dialects: readonly RestDialect[]): RestDialect {
  return {
    handle(exchange) {
      const { segments } = exchange.target
      if (!PREFIX.every((segment, index) => segments[index] === segment)) return false
      exchange.enter(PREFIX.length)
      if (dialects.some((dialect) => dialect.handle(exchange))) return true
      exchange.admit('inference')
      throw new ServeError('ROUTE_NOT_FOUND', notThere(exchange))
    },
    paths: () =>
      dialects
        .flatMap((dialect) => dialect.paths())
        .filter(({ token }) => token !== undefined)
        .map(({ method, path, token }) => ({ method, path: `/${PREFIX.join('/')}${path}`, token })),
  }
}

function notThere({ target }: Exchange): string {
  return `The inference API has no path /${target.segments.join('/').slice(0, 200)}`
}
