import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer, TokenKind } from '../../auth/authorizer.ts'
import type { CallError } from '../../dialects/torchserve/grpc-errors.ts'
import { logFailure, type GrpcLog } from './log.ts'
import { authorize } from './token.ts'

export interface UnaryRpcDeps {
  authorizer: Authorizer
  log: GrpcLog
}

/** One rpc that is no prediction. */
interface UnaryRpc<Request> {
  /** The kind of token that it needs. */
  token: TokenKind
  /** What it throws fails the call. */
  answer(request: Request): object | Promise<object>
  /** The error as this service tells it. */
  toCallError(error: ServeError, request: Request): CallError
}

/** The handler that grpc-js calls for an rpc of this `name`. */
export function unaryRpc<Request>(
  { authorizer, log }: UnaryRpcDeps,
  name: string,
  { token, answer, toCallError }: UnaryRpc<Request>,
) {
  const run = async (call: ServerUnaryCall<Request, object>): Promise<object> => {
    authorize(authorizer, token, call)
    return answer(call.request)
  }
  return (call: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>): void => {
    run(call).then(
      (message) => respond(null, message),
      (thrown: unknown) => {
        const error = ServeError.from(thrown)
        logFailure(log, name, error)
        respond(toCallError(error, call.request))
      },
    )
  }
}
