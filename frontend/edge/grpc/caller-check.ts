import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer, Client } from '../../auth/authorizer.ts'
import { NOBODY, type Principal, type Scope } from '../../auth/principal.ts'
import { type RateLimiter, Visit } from '../../auth/rate-limiter.ts'
import { type AuditLog, refusalOf } from '../../observe/logs/audit-log.ts'
import type { CallError } from './call-error.ts'
import { CallTraffic } from './call-traffic.ts'
import type { Rpc } from './service.ts'

/** Who makes a call that may be let in, and what it uses of limits. */
export interface LetIn {
  readonly principal: Principal
  readonly visit: Visit | undefined
  readonly traffic: CallTraffic | undefined
}

/** Whoever can connect may make the call. */
export const LET_IN: LetIn = { principal: NOBODY, visit: undefined, traffic: undefined }

export interface CallerCheckOptions {
  readonly authorizer: Authorizer
  /** Undefined: it is not written. */
  readonly audit: AuditLog | undefined
  /** Undefined: nothing is limited. */
  readonly limiter: RateLimiter | undefined
}

/** Finds out who makes a call, and counts it against the limits of its address and its caller. */
export class CallerCheck {
  readonly #options: CallerCheckOptions

  constructor(options: CallerCheckOptions) {
    this.#options = options
  }

  /** Who makes a call that asks for a token; or why it is refused, which the audit log tells then. */
  check(
    { toCallError }: Rpc,
    scope: Scope,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    client: Client,
  ): LetIn | CallError {
    const { authorization } = headers
    try {
      return this.#identify(scope, stream, authorization, client)
    } catch (thrown) {
      const error = ServeError.from(thrown)
      const answer = toCallError(error)
      this.#options.audit?.write({
        ...refusalOf(error, authorization),
        operation: headers[':path'] ?? '',
        status: answer.code,
        address: client.remoteAddress,
        protocol: 'grpc',
      })
      return { ...answer, retryAfterMs: error.retryAfterMs }
    }
  }

  /** @throws ServeError UNAUTHORIZED, RATE_LIMITED */
  #identify(
    scope: Scope,
    stream: ServerHttp2Stream,
    authorization: string | undefined,
    client: Client,
  ): LetIn {
    const { authorizer, limiter } = this.#options
    const check = (): Principal => authorizer.check(scope, authorization, client)
    if (limiter === undefined) return { principal: check(), visit: undefined, traffic: undefined }
    const traffic = new CallTraffic()
    const visit = new Visit(limiter, traffic)
    try {
      visit.from(client.remoteAddress)
      const principal = check()
      visit.by(principal)
      if (!visit.counts) return { principal, visit: undefined, traffic: undefined }
      stream.once('close', () => visit.end())
      return { principal, visit, traffic }
    } catch (thrown) {
      visit.end()
      throw thrown
    }
  }
}
