import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import type { ServerInterceptingCallInterface } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer, Client } from '../../auth/gatekeeper.ts'
import { identityOf, keyNameOf, NOBODY, type Principal, type Scope } from '../../auth/principal.ts'
import { type RateLimiter, Visit } from '../../auth/rate-limiter.ts'
import { type Sender, UNIX_SOCKET } from '../../jobs/job-request.ts'
import { type AuditLog, type AuditSubject, outcomeOf, refusalOf } from '../../observe/logs/audit-log.ts'
import type { Refusals } from '../../observe/metrics/refusals.ts'
import type { RequestSpan } from '../../observe/traces/tracing.ts'
import type { CallError } from './call-error.ts'
import type { Rpc } from './definitions.ts'

type AuthContext = ReturnType<ServerInterceptingCallInterface['getAuthContext']>

/** What every call of grpc-js tells of who makes it. */
export type Call = Pick<ServerInterceptingCallInterface, 'getAuthContext' | 'getPeer'>

/** What grpc-js calls the auth context of a call: here, who makes it. */
class Caller implements AuthContext {
  readonly transportSecurityType?: string
  readonly principal: Principal
  /** What the call uses of limits; undefined: there are none. */
  readonly visit: Visit | undefined
  /** Undefined: tracing is off. */
  readonly span: RequestSpan | undefined

  constructor(principal: Principal, visit?: Visit, span?: RequestSpan) {
    this.principal = principal
    this.visit = visit
    this.span = span
  }
}

/** One function for each principal, because every call needs one, and most have nothing else. */
const contexts = new WeakMap<Principal, () => AuthContext>()

/**
 * From now on `principalOf` knows who makes this call, `visitOf` what it uses of limits, and CallSender its
 * span.
 */
export function setCaller(call: Call, principal: Principal, visit?: Visit, span?: RequestSpan): void {
  const isOther = visit !== undefined || span !== undefined
  let context = isOther ? undefined : contexts.get(principal)
  if (context === undefined) {
    const caller = new Caller(principal, visit, span)
    context = () => caller
    if (!isOther) contexts.set(principal, context)
  }
  call.getAuthContext = context
}

/** Who makes a call, in the handler of an rpc. */
export function principalOf(call: Call): Principal {
  const context = call.getAuthContext()
  return context instanceof Caller ? context.principal : NOBODY
}

/** Who makes a call. */
export class CallSender implements Sender {
  readonly #call: Call

  constructor(call: Call) {
    this.#call = call
  }

  /** grpc-js writes `127.0.0.1:50000` and `[::1]:50000`, and `unknown` for a Unix socket. */
  get address(): string {
    const [, bracketed, plain] = /^(?:\[(.*)\]|(.*)):\d+$/.exec(this.#call.getPeer()) ?? []
    return bracketed ?? plain ?? UNIX_SOCKET
  }

  get keyName(): string | undefined {
    return keyNameOf(principalOf(this.#call))
  }

  get identity(): string | undefined {
    return identityOf(principalOf(this.#call))
  }

  get span(): RequestSpan | undefined {
    const context = this.#call.getAuthContext()
    return context instanceof Caller ? context.span : undefined
  }
}

/** What a call uses of limits, in the handler of an rpc; undefined: there are none. */
export function visitOf(call: Call): Visit | undefined {
  const context = call.getAuthContext()
  return context instanceof Caller ? context.visit : undefined
}

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

export type { AuditSubject } from '../../observe/logs/audit-log.ts'

/** A management call, as the audit log names it. */
export interface Managed<Request> {
  readonly operation: string
  subject(request: Request): AuditSubject
}

interface Options<Request> extends Managed<Request> {
  readonly audit: AuditLog | undefined
  readonly toCallError: (error: ServeError, request: Request) => CallError
}

/** Runs a management call, and writes its line in the audit log whatever its outcome. */
export async function audited<Request, T>(
  call: Call,
  request: Request,
  run: () => T | Promise<T>,
  { audit, operation, subject, toCallError }: Options<Request>,
): Promise<T> {
  if (audit === undefined) return run()
  const { name, kind } = principalOf(call)
  const peer = call.getPeer()
  const write = (status: number, error?: ServeError): void => {
    audit.write({
      event: 'management',
      operation,
      ...outcomeOf(error),
      status,
      who: { name, kind },
      address: peer.slice(0, peer.lastIndexOf(':')),
      protocol: 'grpc',
      ...subject(request),
    })
  }
  try {
    const result = await run()
    write(0)
    return result
  } catch (thrown) {
    const error = ServeError.from(thrown)
    write(toCallError(error, request).code, error)
    throw error
  }
}
