import type { IncomingMessage } from 'node:http'
import { ServeError } from '../../../common/errors.ts'
import type { TokenKind } from '../../auth/authorizer.ts'
import { declaresTooLarge } from './request-headers.ts'
import type { RestState } from './rest-state.ts'

/**
 * What every request must pass before anything is done for it; without `kind` no token is asked for.
 * @throws ServeError PAYLOAD_TOO_LARGE, SHUTTING_DOWN, UNAUTHORIZED
 */
export function admit(state: RestState, req: IncomingMessage, kind: TokenKind | undefined): void {
  if (declaresTooLarge(req, state.settings.maxRequestSize)) {
    throw new ServeError('PAYLOAD_TOO_LARGE', 'The request is larger than max_request_size')
  }
  if (state.draining) throw new ServeError('SHUTTING_DOWN', 'The server is shutting down')
  if (kind !== undefined) state.authorizer.check(kind, req.headers.authorization, req.socket.remoteAddress)
}
