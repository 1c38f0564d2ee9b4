import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer, Client } from '../../auth/authorizer.ts'
import { NOBODY, type Principal, type Scope } from '../../auth/principal.ts'
import { type RateLimiter, Visit } from '../../auth/rate-limiter.ts'
import { type AuditLog, refusalOf } from '../../observe/logs/audit-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { CallError } from './call-error.ts'
import type { Rpc } from './service.ts'

/** Bytes of the messages of one call, as they are on the wire. Only for calls that have a limit. */
export class CallTraffic {
  bytes = 0
}

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
  /** Undefined: refusals are not counted. */
  readonly refusals: Pick<Refusals, 'count'> | undefined
}

/** Finds out who makes a call, and counts it against the limits of its caller. */
export class CallerCheck {
  readonly #options: CallerCheckOptions

  constructor(options: CallerCheckOptions) {
    this.#options = options
  }

  /** Who makes a call that asks for a token; or why it is refused. */
  check(
    rpc: Rpc,
    scope: Scope,
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
    client: Client,
  ): LetIn | CallError {
    const { authorizer, limiter } = this.#options
    try {
      const principal = authorizer.check(scope, headers.authorization, client)
      if (limiter?.limits(principal) !== true) return { principal, visit: undefined, traffic: undefined }
      const traffic = new CallTraffic()
      const visit = new Visit(limiter, traffic)
      visit.by(principal)
      stream.once('close', () => visit.end())
      return { principal, visit, traffic }
    } catch (thrown) {
      return this.#refusal(rpc, headers, client, ServeError.from(thrown))
    }
  }

  /** Metrics and the audit log tell it. */
  #refusal(rpc: Rpc, headers: IncomingHttpHeaders, client: Client, error: ServeError): CallError {
    const answer = rpc.toCallError(error)
    this.#options.refusals?.count(error, headers.authorization)
    this.#options.audit?.write({
      ...refusalOf(error, headers.authorization),
      operation: headers[':path'] ?? '',
      status: answer.code,
      address: client.remoteAddress,
      protocol: 'grpc',
    })
    return { ...answer, retryAfterMs: error.retryAfterMs }
  }
}
