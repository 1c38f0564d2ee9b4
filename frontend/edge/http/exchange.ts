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
 * One request and its reply. It is made once, and every dialect that the request is offered to gets the same
 * one.
 */
export class Exchange {
  /** The listener that the request came to, and what it serves with. */
  readonly state: RestState
  readonly req: IncomingMessage
  readonly res: ServerResponse
  readonly connection: Connection
  readonly target: Target
  /** x-request-id of the answer. */
  readonly requestId: string = randomUUID()
  /** When the request came; milliseconds since the epoch. */
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
   * What every request must pass before anything is done for it; without `kind` no token is asked for.
   * @throws ServeError PAYLOAD_TOO_LARGE, SHUTTING_DOWN, UNAUTHORIZED
   */
  admit(kind: TokenKind | undefined): void {
    const { state, req } = this
    if (declaresTooLarge(req, state.settings.maxRequestSize))
      throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
    if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
    if (kind !== undefined) state.authorizer.check(kind, req.headers.authorization, req.socket)
  }

  /**
   * Counts the answer and writes its line in the access log. To be called once, when the head is written: the
   * line of a stream tells the time to its first item, as in TorchServe.
   */
  answered(status: number): void {
    this.state.metrics.response(status)
    this.logAccess(status)
  }

  /** The line alone, for what the metrics do not count. */
  logAccess(status: number): void {
    this.state.accessLog?.rest(this.connection.peer, this.req, status, this.startedAt)
  }

  /** Failures of our own go to the log with their stack; clients see only the message. */
  logFailure({ code, detail, stack, message }: ServeError): void {
    if (code !== 'INTERNAL') return
    this.state.log.error({ requestId: this.requestId, detail: detail ?? stack }, message)
  }

  /**
   * A listener of a stream that belongs to this request. Nothing else catches what it throws, which would end
   * the process: it fails this request alone, with 500 if nothing was sent yet, else by ending its
   * connection.
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
