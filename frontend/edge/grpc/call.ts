import type { IncomingHttpHeaders, ServerHttp2Stream } from 'node:http2'
import { status as Status, type ServerInterceptingCallInterface } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/gatekeeper.ts'
import type { Scope } from '../../auth/principal.ts'
import type { RateLimiter } from '../../auth/rate-limiter.ts'
import { UNIX_SOCKET } from '../../jobs/job-request.ts'
import { type AuditLog, type AuditSubject, outcomeOf } from '../../observe/logs/audit-log.ts'
import type { AccessLog } from '../../observe/logs/access-log.ts'
import { loggedTraceId } from '../../observe/traces/tracing.ts'
import { Call, type Operations } from '../call.ts'
import { sentStatus } from './call-trace.ts'
import type { CallError } from './call-error.ts'
import type { Connection } from './connection.ts'

type AuthContext = ReturnType<ServerInterceptingCallInterface['getAuthContext']>

/** What handlers of grpc-js get, as far as it leads to the call. */
export type Surface = Pick<ServerInterceptingCallInterface, 'getAuthContext'>

/** What the calls of a listener share. */
export interface CallDeps {
  readonly operations: Operations
  readonly authorizer: Authorizer
  /** Undefined: nothing is limited. */
  readonly limiter: RateLimiter | undefined
  /** Undefined: there is none. */
  readonly accessLog: AccessLog | undefined
}

const OK: number = Status.OK

/** A call over gRPC, from its metadata to the end of its stream. grpc-js has it as its auth context. */
export class GrpcCall extends Call implements NonNullable<AuthContext> {
  readonly transportSecurityType?: string
  readonly path: string
  /** Bytes of its messages, as they are on the wire. */
  bytes = 0
  readonly #deps: CallDeps
  readonly #stream: ServerHttp2Stream
  readonly #connection: Connection
  readonly #startedAt = Date.now()

  constructor(deps: CallDeps, stream: ServerHttp2Stream, path: string, connection: Connection) {
    super(deps.operations)
    this.path = path
    this.#deps = deps
    this.#stream = stream
    this.#connection = connection
  }

  get address(): string {
    return this.#connection.address ?? UNIX_SOCKET
  }

  /**
   * Finds out who makes it, and counts it against the limits of its sender.
   * @throws ServeError UNAUTHORIZED, RATE_LIMITED
   */
  authorize(scope: Scope, { authorization }: IncomingHttpHeaders): void {
    const { authorizer, limiter } = this.#deps
    const principal = authorizer.check(scope, authorization, this.#connection.client)
    if (this.identify(principal, limiter)) this.#stream.once('close', () => this.leave())
  }

  /** Writes its line of the access log. A stream that closes without a status was cancelled. */
  closed(): void {
    const { accessLog } = this.#deps
    if (accessLog === undefined) return
    const code = sentStatus(this.#stream) ?? Status.CANCELLED
    const traceId = loggedTraceId(this.span, code !== OK)
    accessLog.grpc(this.#connection.peer, this.path, code, this.#startedAt, traceId)
  }
}

const CALL = Symbol('call')

interface Marked extends Surface {
  [CALL]?: GrpcCall
}

/** One function for all calls: a closure for each would cost as much as the call's own object. */
function contextOf(this: Marked): AuthContext {
  return this[CALL]!
}

/** From now on handlers find `call` with {@link callOf}. */
export function setCall(surface: Surface, call: GrpcCall): void {
  const marked: Marked = surface
  marked[CALL] = call
  marked.getAuthContext = contextOf
}

/** The call that a handler of grpc-js is called with. @throws Error when it did not pass the call gate */
export function callOf(surface: Surface): GrpcCall {
  const context = surface.getAuthContext()
  if (context instanceof GrpcCall) return context
  throw new Error('The call did not pass the call gate')
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
  call: GrpcCall,
  request: Request,
  run: () => T | Promise<T>,
  { audit, operation, subject, toCallError }: Options<Request>,
): Promise<T> {
  if (audit === undefined) return run()
  const { name, kind } = call.principal
  const write = (status: number, error?: ServeError): void => {
    audit.write({
      event: 'management',
      operation,
      ...outcomeOf(error),
      status,
      who: { name, kind },
      address: call.address,
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
