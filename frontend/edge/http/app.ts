import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import { Exchange } from './exchange.ts'
import type { RestState } from './rest-state.ts'

/** A component that answers requests. */
export interface ExchangeHandler {
  /** Returns false if the request is not for it; nothing was done then. */
  handle(exchange: Exchange): boolean
}

/** What one listener serves. */
export interface RestApp {
  readonly listener: RequestListener
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
  const offer = (exchange: Exchange): void => {
    try {
      if (exchange.target.error !== undefined) throw exchange.target.error
      for (const handler of handlers) if (handler.handle(exchange)) return
      otherwise(exchange)
    } catch (thrown) {
      state.errors.fail(exchange, ServeError.from(thrown))
    }
  }
  return {
    listener: (req: IncomingMessage, res: ServerResponse) => {
      const exchange = new Exchange(state, req, res)
      const work = state.authorizer.prepare?.(req.headers.authorization, req.socket)
      if (work === undefined) offer(exchange)
      // Nothing of the body is read meanwhile.
      else void work.then(() => offer(exchange))
    },
    state,
    beginDrain: () => {
      state.draining = true
    },
  }
}
