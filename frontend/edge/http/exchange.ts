import { sendAnswers } from './chunk-writer.ts'
import { ServeError } from '../../../common/errors.ts'
import { identityOf, keyNameOf, NOBODY, type Principal, type Scope } from '../../auth/principal.ts'
import { type RateLimiter, type Traffic, Visit } from '../../auth/rate-limiter.ts'
import { newRequestId, type Sender, UNIX_SOCKET } from '../../jobs/job-request.ts'
import { modelMeant } from '../../models/model-errors.ts'
import type { ModelOperations, Routed } from '../../models/operations.ts'
import type { WorkflowOperations } from '../../workflows/operations.ts'
import { type AuditEntry, refusalOf } from '../../observe/logs/audit-log.ts'
import type { Operations } from '../permitted.ts'
import { loggedTraceId, type RequestSpan } from '../../observe/traces/tracing.ts'
import { type Connection, connectionOf } from './connection.ts'
import { HttpReply } from './http-reply.ts'
import { opensPage } from './page-check.ts'
import { checkHead, clientHeaders, declaresTooLarge } from './request-headers.ts'
import { traceRequest } from './request-trace.ts'
import type { RestState } from './rest-state.ts'
import type { SafeResponse } from './safe-response.ts'
import type { ServerRequest } from './server-request.ts'
import { type Target, targetOf } from './target.ts'

/**
 * One request and its reply. It is created once; every dialect that the request is offered to gets the same
 * object.
 */
export class Exchange implements Traffic, Sender {
  /** The listener that received the request, and its dependencies. */
  readonly state: RestState
  readonly req: ServerRequest
  readonly res: SafeResponse
  readonly connection: Connection
  /** Where it leads; see {@link enter}. */
  target: Target
  /** Whether its path was below another API's. */
  entered = false
  /** x-request-id of the response. */
  readonly requestId: string = newRequestId()
  /** When the request arrived, in milliseconds since the epoch. */
  readonly startedAt = Date.now()
  readonly reply: HttpReply
  /** Undefined: tracing is off, or nobody wants to see this request. */
  readonly span: RequestSpan | undefined
  /** Who sent it, once `admit` has let it in. */
  principal: Principal = NOBODY
  /** What it uses of limits; undefined: there are none. */
  #visit: Visit | undefined
  /** Bytes that the connection had written before it was admitted. */
  #writtenBefore = 0
  #operations: Operations | undefined
  /** The answer of `modelMeant`, which a dialect's message and the header ask for. */
  #meant: { error: ServeError; name: string | undefined } | undefined
  #routed: Routed | undefined

  constructor(state: RestState, req: ServerRequest, res: SafeResponse) {
    this.state = state
    this.req = req
    this.res = res
    this.connection = connectionOf(req.socket)
    this.target = targetOf(req.url!)
    this.reply = new HttpReply(this)
    this.span = state.tracing && traceRequest(this, state.tracing)
  }

  /**
   * Checks that every request must pass before anything is decided by its path or its token.
   * @throws ServeError INVALID_ARGUMENT, FOREIGN_PAGE
   */
  arrive(): void {
    const { state, req, target } = this
    checkHead(req)
    state.pages.check(req.headers, target.authority, this.connection, opensPage(req, target.segments))
  }

  /**
   * Checks that every request must pass that is for a route; without `scope` no token is required.
   * @param hasOwnLimit whether the route limits the size of the body itself
   * @throws ServeError PAYLOAD_TOO_LARGE, SHUTTING_DOWN, UNAUTHORIZED, RATE_LIMITED
   */
  admit(scope: Scope | 'any' | undefined, hasOwnLimit = false): void {
    const { state, req } = this
    if (!hasOwnLimit && declaresTooLarge(req, state.settings.maxRequestSize))
      throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
    if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    this.authorize(scope)
  }

  /**
   * Finds out who sent the request, and counts it against the limits of its sender.
   * @throws ServeError UNAUTHORIZED, RATE_LIMITED
   */
  authorize(scope: Scope | 'any' | undefined): void {
    if (scope === undefined) return
    const { state, req } = this
    const { limiter } = state
    try {
      this.principal = state.authorizer.check(scope, req.headers.authorization, req.socket)
      this.#operations = undefined
      if (limiter?.limits(this.principal)) this.#begin(limiter).by(this.principal)
    } catch (thrown) {
      this.#tellRefusal(ServeError.from(thrown))
      throw thrown
    }
  }

  /** Bytes of its body, and of what was sent since it was admitted. */
  get bytes(): number {
    return this.req.bodyBytes + this.req.socket.bytesWritten - this.#writtenBefore
  }

  /** Headers for OpenAI's clients about what is left of a limit on requests; empty without one. */
  rateHeaders(): string[] {
    return this.#visit?.headers() ?? []
  }

  get address(): string {
    return this.connection.address ?? UNIX_SOCKET
  }

  get keyName(): string | undefined {
    return keyNameOf(this.principal)
  }

  get identity(): string | undefined {
    return identityOf(this.principal)
  }

  /** What every line of the audit log says of the request. */
  auditFacts(): Pick<AuditEntry, 'who' | 'address' | 'protocol' | 'requestId'> {
    const { name, kind } = this.principal
    const who = this.principal === NOBODY ? undefined : { name, kind }
    return { who, address: this.req.socket.remoteAddress, protocol: 'rest', requestId: this.requestId }
  }

  /** A request may be admitted more than once, on its way through the dialects. */
  #begin(limiter: RateLimiter): Visit {
    if (this.#visit !== undefined) return this.#visit
    this.#writtenBefore = this.req.socket.bytesWritten
    const visit = (this.#visit = new Visit(limiter, this))
    this.res.once('close', () => visit.end())
    return visit
  }

  /** Metrics and the audit log tell it. */
  #tellRefusal(error: ServeError): void {
    const { audit, metrics } = this.state
    const { method, url, headers } = this.req
    metrics.refusals.count(error, headers.authorization)
    if (audit === undefined || (error.code !== 'UNAUTHORIZED' && error.code !== 'RATE_LIMITED')) return
    audit.write({
      ...refusalOf(error, headers.authorization),
      operation: `${method!} ${url!}`,
      ...this.auditFacts(),
    })
  }

  /**
   * The version that is to get the request: always the same, whichever dialect asks.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
   */
  route(modelName: string, modelVersion: string | undefined): Routed {
    const { req } = this
    const asked = {
      modelName,
      modelVersion,
      // Few models look at them here.
      get headers(): string {
        return clientHeaders(req).headers
      },
    }
    return (this.#routed ??= this.models.route(asked))
  }

  /** From now on the path begins after this many segments, for an API that is served below them. */
  enter(segments: number): void {
    this.target = { ...this.target, segments: this.target.segments.slice(segments) }
    this.entered = true
  }

  /** The version that a dialect has asked for before. */
  get routedTo(): string | undefined {
    return this.#routed?.routedTo
  }

  /** The version that weights chose, if a dialect asked for one. */
  get weighedTo(): string | undefined {
    return this.#routed?.byWeight === true ? this.#routed.routedTo : undefined
  }

  servedBy(version: string): void {
    this.span?.set(['torchserve_ts.model.version', version])
  }

  /** The models that its sender may use. */
  get models(): ModelOperations {
    return this.#permitted.models
  }

  /** For a model that is not there: the nearest name of those that its sender may use; undefined: none. */
  modelMeant(error: ServeError): string | undefined {
    if (error.absent === undefined) return undefined
    if (error !== this.#meant?.error) this.#meant = { error, name: modelMeant(error, this.models) }
    return this.#meant.name
  }

  /** The workflows that its sender may use. */
  get workflows(): WorkflowOperations {
    return this.#permitted.workflows
  }

  get #permitted(): Operations {
    return (this.#operations ??= this.state.operationsFor(this.principal))
  }

  /**
   * Counts the response and writes its line in the access log. Call it once, when the head is written: the
   * line of a stream shows the time to its first item, as in TorchServe.
   */
  answered(status: number): void {
    this.state.metrics.response(status)
    this.logAccess(status)
  }

  /** Only the line, for responses that the metrics do not count. */
  logAccess(status: number): void {
    const traceId = loggedTraceId(this.span, status >= 400)
    this.state.accessLog?.rest(this.connection.peer, this.req, status, this.startedAt, traceId)
  }

  /** Logs internal failures with their stack; clients see only the message. */
  logFailure({ code, detail, stack, message }: ServeError): void {
    if (code !== 'INTERNAL') return
    const { requestId, span } = this
    this.state.log.error({ requestId, traceId: span?.traceId, detail: detail ?? stack }, message)
  }

  /**
   * Adds a listener to a stream of this request. An exception in it, which would otherwise end the process,
   * fails only this request: with 500 if nothing was sent yet, else by closing its connection.
   */
  guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    return (...args) => this.guard(() => listener(...args))
  }

  /** Runs a step of this request, of which the same is true. */
  guard(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      this.#crashed(ServeError.from(thrown))
    }
  }

  #crashed(error: ServeError): void {
    if (!this.res.headersSent && !this.res.destroyed && !this.reply.ended) {
      this.state.errors.fail(this, error)
      return
    }
    this.logFailure(error)
    sendAnswers()
    this.res.destroy()
  }
}
