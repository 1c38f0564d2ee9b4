import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import type { TokenKind } from '../../auth/authorizer.ts'
import { type Connection, connectionOf } from './connection.ts'
import { HttpReply } from './http-reply.ts'
import { declaresTooLarge } from './request-headers.ts'
import type { RestState } from './rest-state.ts'
import { type Target, targetOf } from './target.ts'

/**
 * One request and its reply. It is created once; every dialect that the request is offered to gets the same
 * object.
 */
export class Exchange {
  /** The listener that received the request, and its dependencies. */
  readonly state: RestState
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly connection: Connection
  readonly target: Target
  /** x-request-id of the response. */
  readonly requestId: string = randomUUID()
  /** When the request arrived, in milliseconds since the epoch. */
  readonly startedAt = Date.now()
  readonly reply: HttpReply

  constructor(state: RestState, req: IncomingMessage, res: ServerResponse) {
    this.state = state
    this.req = req
    this.res = res
    this.connection = connectionOf(req.socket)
    this.target = targetOf(req.url!)
    this.reply = new HttpReply(this)
  }

  /**
   * Checks that every request must pass first; without `kind` no token is required.
   * @throws ServeError FOREIGN_PAGE, PAYLOAD_TOO_LARGE, SHUTTING_DOWN, UNAUTHORIZED
   */
  admit(kind: TokenKind | undefined): void {
    const { state, req } = this
    this.checkPage()
    if (declaresTooLarge(req, state.settings.maxRequestSize))
      throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
    if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    if (kind !== undefined) state.authorizer.check(kind, req.headers.authorization, req.socket)
  }

  /** The part of `admit` for routes that answer while the server stops. @throws ServeError FOREIGN_PAGE */
  checkPage(): void {
    this.state.pages.check(this.req.headers, this.connection)
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
    this.state.accessLog?.rest(this.connection.peer, this.req, status, this.startedAt)
  }

  /** Logs internal failures with their stack; clients see only the message. */
  logFailure({ code, detail, stack, message }: ServeError): void {
    if (code !== 'INTERNAL') return
    this.state.log.error({ requestId: this.requestId, detail: detail ?? stack }, message)
  }

  /**
   * Adds a listener to a stream of this request. An exception in it, which would otherwise end the process,
   * fails only this request: with 500 if nothing was sent yet, else by closing its connection.
   */
  guarded<Args extends unknown[]>(listener: (...args: Args) => void): (...args: Args) => void {
    return (...args) => {
      try {
        listener(...args)
      } catch (thrown) {
        this.#crashed(ServeError.from(thrown))
      }
    }
  }

  #crashed(error: ServeError): void {
    if (!this.res.headersSent && !this.res.destroyed && !this.reply.ended) {
      this.state.errors.fail(this, error)
      return
    }
    this.logFailure(error)
    this.res.destroy()
  }
}
