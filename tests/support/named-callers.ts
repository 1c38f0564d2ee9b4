import { ServeError } from '../../common/errors.ts'
import type { Authorizer } from '../../frontend/auth/gatekeeper.ts'
import type { Principal, RateLimits } from '../../frontend/auth/principal.ts'

/** Takes `Bearer NAME` of those who are named, with their limits; each may do everything. */
export function namedCallers(limitsByName: Record<string, RateLimits | undefined>): Authorizer {
  const callers = new Map(
    Object.entries(limitsByName).map(([name, limits]): [string, Principal] => [
      `Bearer ${name}`,
      { name, kind: 'api key', limits, seesAll: true, sees: () => true, allows: () => true },
    ]),
  )
  return {
    check: (_scope, authorization = '') => {
      const caller = callers.get(authorization)
      if (caller === undefined) throw new ServeError('UNAUTHORIZED', 'Token Authorization failed.')
      return caller
    },
    rotate: (kind, authorization) => {
      if (kind !== undefined && authorization === 'Bearer API') return Promise.resolve()
      return Promise.reject(new ServeError('INVALID_API_KEY', 'Token Authentication failed.'))
    },
  }
}
