import { ServeError } from '../../../common/errors.ts'
import { NOBODY, type Scope } from '../../auth/principal.ts'
import { Job } from '../../jobs/job.ts'
import { type JobRequest, newRequestId, UNIX_SOCKET } from '../../jobs/job-request.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import { modelMeant } from '../../models/model-errors.ts'
import type { Routed } from '../../models/operations.ts'
import { type AuditEntry, refusalOf } from '../../observe/logs/audit-log.ts'
import { loggedTraceId } from '../../observe/traces/tracing.ts'
import { Call } from '../call.ts'
import type { HttpApi, RestState } from './app.ts'
import { sendAnswers } from './chunk-writer.ts'
import { type Connection, connectionOf } from './connection.ts'
import { HttpReply, type Refusal } from './http-reply.ts'
import { opensPage } from './page-check.ts'
import { checkHead, clientHeaders, declaresTooLarge, type Target, targetOf } from './request-head.ts'
import { traceRequest } from './request-trace.ts'
import type { SafeResponse } from './safe-response.ts'
import type { ServerRequest } from './server-request.ts'

/** What one job asks of the models beside what it has of its call. */
export type OwnRequest = Omit<JobRequest, 'requestId' | 'dialect' | 'sender' | 'routedTo' | 'headers'> &
  Partial<Pick<JobRequest, 'requestId'>>

/** A call over HTTP: its request, and its reply. Every API that it is offered to gets the same object. */
export class HttpCall extends Call {
  /** The id of its jobs, and `x-request-id` of its response. */
  readonly requestId = newRequestId()
  /** The listener that received the request, and its dependencies. */
  readonly state: RestState
  readonly req: ServerRequest
  readonly res: SafeResponse
  readonly connection: Connection
  /** Where it leads; see {@link enter}. */
  target: Target
  /** Whether its path was below another API's. */
  entered = false
  /** When it arrived, in milliseconds since the epoch. */
  readonly startedAt = Date.now()
  readonly reply: HttpReply
  /** The API that answers it; undefined: none yet, so the listener answers failures. */
  api: HttpApi | undefined
  /** Bytes that the connection had written before its limits counted. */
  #writtenBefore = 0
  /** The answer of `modelMeant`, which an API's message and the header ask for. */
  #meant: { error: ServeError; name: string | undefined } | undefined
  #routed: Routed | undefined
  /** Of the client, for all its jobs: an OpenAI request may have 128. */
  #headers: ReturnType<typeof clientHeaders> | undefined

  constructor(state: RestState, req: ServerRequest, res: SafeResponse) {
    super(state.operations)
    this.state = state
    this.req = req
    this.res = res
    this.connection = connectionOf(req.socket)
    this.target = targetOf(req.url!)
    this.reply = new HttpReply(this)
    this.span = state.tracing && traceRequest(this, state.tracing)
  }

  get address(): string {
    return this.connection.address ?? UNIX_SOCKET
  }

  /** Bytes of its body, and of what was sent since its limits count. */
  get bytes(): number {
    return this.req.bodyBytes + this.req.socket.bytesWritten - this.#writtenBefore
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
   * @throws ServeError PAYLOAD_TOO_LARGE, SHUTTING_DOWN, UNAUTHORIZED, RATE_LIMITED
   */
  admit(scope: Scope | 'any' | undefined): void {
    const { state, req } = this
    if (declaresTooLarge(req, state.settings.maxRequestSize))
      throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
    if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    if (scope !== undefined) this.authorize(scope)
  }

  /**
   * Finds out who sent the request, and counts it against the limits of its sender.
   * @throws ServeError UNAUTHORIZED, RATE_LIMITED
   */
  authorize(scope: Scope | 'any'): void {
    const { state, req, res } = this
    try {
      const principal = state.authorizer.check(scope, req.headers.authorization, req.socket)
      if (!this.identify(principal, state.limiter)) return
    } catch (thrown) {
      this.#countRefusal(ServeError.from(thrown))
      throw thrown
    }
    this.#writtenBefore = req.socket.bytesWritten
    res.once('close', () => this.leave())
  }

  /** In the metrics, and in the audit log. */
  #countRefusal(error: ServeError): void {
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

  /** What every line of the audit log has of the request. */
  auditFacts(): Pick<AuditEntry, 'who' | 'address' | 'protocol' | 'requestId'> {
    const { name, kind } = this.principal
    const who = this.principal === NOBODY ? undefined : { name, kind }
    return { who, address: this.address, protocol: 'rest', requestId: this.requestId }
  }

  /**
   * The version that is to get the request: the same for every API that asks.
   * @throws ServeError MODEL_NOT_FOUND, VERSION_NOT_FOUND
   */
  routeTo(modelName: string, modelVersion: string | undefined): Routed {
    const { req } = this
    const request = {
      modelName,
      modelVersion,
      // Only sticky weights read them.
      get headers(): string {
        return clientHeaders(req).headers
      },
    }
    return (this.#routed ??= this.models.route(request))
  }

  /** The version that weights chose, if an API asked for one. */
  get weighedTo(): string | undefined {
    return this.#routed?.byWeight === true ? this.#routed.routedTo : undefined
  }

  servedBy(version: string): void {
    this.span?.set(['torchserve_ts.model.version', version])
  }

  /** A job of this call: `own` is what the call does not have. */
  job(own: OwnRequest, sink: ReplySink): Job {
    const { headers, credentials } = (this.#headers ??= clientHeaders(this.req))
    const request: JobRequest = {
      requestId: this.requestId,
      dialect: this.api?.name,
      sender: this,
      routedTo: this.#routed?.routedTo,
      headers,
      credentials,
      ...own,
    }
    return new Job(request, sink)
  }

  /** From now on the path begins after this many segments, for an API that is served below them. */
  enter(segments: number): void {
    this.target = { ...this.target, segments: this.target.segments.slice(segments) }
    this.entered = true
  }

  /** For a model that is not there: the nearest name of those that its sender may use; undefined: none. */
  modelMeant(error: ServeError): string | undefined {
    if (error.absent === undefined) return undefined
    if (error !== this.#meant?.error) this.#meant = { error, name: modelMeant(error, this.models) }
    return this.#meant.name
  }

  /** Answers with a failure in the form of its API; a stream that has begun breaks off. */
  fail(thrown: unknown): void {
    const error = ServeError.from(thrown)
    const { reply } = this
    if (reply.opened) reply.break(error)
    else reply.refuse(error, this.refusal(error))
  }

  /** How its API answers a failure. */
  refusal(error: ServeError): Refusal {
    return this.api?.refusal?.(this, error) ?? this.state.errors.refusal(this, error)
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

  /** A listener of a stream of this request, guarded. */
  guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    return (...args) => this.guard(() => listener(...args))
  }

  /**
   * Runs a step of this request. An exception in it, which would otherwise end the process, fails only this
   * request: with its error if nothing was sent yet, else by closing its connection.
   */
  guard(step: () => void): void {
    try {
      step()
    } catch (thrown) {
      const { res, reply } = this
      if (!res.headersSent && !res.destroyed && !reply.ended) {
        this.fail(thrown)
        return
      }
      this.logFailure(ServeError.from(thrown))
      sendAnswers()
      res.destroy()
    }
  }
}
