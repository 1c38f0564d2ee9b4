import type { RequestListener } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import type { ClientAdmission } from '../admission/admission.ts'
import { connectionOf } from './connection.ts'
import { Exchange } from './exchange.ts'
import { hasUnknownCoding } from './request-headers.ts'
import type { RestState } from './rest-state.ts'
import type { SafeResponse } from './safe-response.ts'
import { MAX_HEAD_BYTES, type ServerRequest } from './server-request.ts'
import { skipBody } from './unwanted-body.ts'

/** Handles a request of a REST listener. */
export type Listening = RequestListener<typeof ServerRequest, typeof SafeResponse>

/** A component that answers requests. */
export interface ExchangeHandler {
  /** Returns false if the request is not for it; nothing was done then. */
  handle(exchange: Exchange): boolean
  /**
   * Answers, as its own API does, a request that was refused before it was offered to anybody. Returns false
   * if the path is not its own. Absent: the listener answers.
   */
  refuse?(exchange: Exchange, error: ServeError): boolean
}

/** What one listener serves. */
export interface RestApp {
  readonly listener: Listening
  /** For requests with an Expect header that is not known. */
  readonly expectation: Listening
  readonly state: RestState
  /** From now on new requests get 503, and connections are closed after their response. */
  beginDrain(): void
}

/** Offers each request to the handlers in order, and last to `otherwise`. */
export function createApp(
  state: RestState,
  handlers: readonly ExchangeHandler[],
  otherwise: (exchange: Exchange) => void,
): RestApp {
  const arrive = (req: ServerRequest, res: SafeResponse): Exchange | undefined => {
    const exchange = new Exchange(state, req, res)
    if (mayGoOnSending(req)) res.once('prefinish', () => req.complete || skipBody(req))
    try {
      exchange.arrive()
      return exchange
    } catch (thrown) {
      const error = ServeError.from(thrown)
      if (!handlers.some((handler) => handler.refuse?.(exchange, error))) state.errors.fail(exchange, error)
      return undefined
    }
  }
  const offer = (exchange: Exchange): void => {
    try {
      if (exchange.target.error !== undefined) {
        exchange.admit(state.listener === 'metrics' ? undefined : 'any')
        throw exchange.target.error
      }
      if (state.cors.answered(exchange)) return
      for (const handler of handlers) if (handler.handle(exchange)) return
      otherwise(exchange)
    } catch (thrown) {
      state.errors.fail(exchange, ServeError.from(thrown))
    }
  }
  const take = (req: ServerRequest, res: SafeResponse): void => {
    const exchange = arrive(req, res)
    if (exchange === undefined) return
    if (hasUnknownCoding(req)) {
      exchange.answered(501)
      res.writeHead(501, { connection: 'close' }).end()
      return
    }
    const work = state.authorizer.prepare?.(req.headers.authorization, req.socket)
    if (work === undefined) offer(exchange)
    // Nothing of the body is read meanwhile.
    else void work.then(() => offer(exchange))
  }
  const refuse = (req: ServerRequest, res: SafeResponse): void => {
    if (arrive(req, res) === undefined) return
    res.writeHead(417, { connection: 'close' }).end()
  }
  return {
    listener: inTurn(take, state.admission),
    expectation: inTurn(refuse, state.admission),
    state,
    beginDrain: () => {
      state.draining = true
    },
  }
}

/**
 * Whether much of the body may come after the answer. Node itself would read the rest, whatever its pieces,
 * and tell nobody: its bytes would seem to belong to no request.
 */
function mayGoOnSending({ headers }: ServerRequest): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > MAX_HEAD_BYTES
}

/** Handles a request at once, or when those before it on its connection have their answers. */
export function inTurn(handle: Listening, admission: ClientAdmission): Listening {
  return (req, res) => {
    // It has the socket from the start, unless others come first.
    if (res.socket !== null) handle(req, res)
    else
      connectionOf(req.socket)
        .pipeline(admission)
        .take(res, () => handle(req, res))
  }
}
