import { callOf, type GrpcCall } from './call.ts'
import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import { logFailure, type CallError, type GrpcLog } from './call-error.ts'

/** One rpc that is no prediction. */
interface UnaryRpc<Request> {
  /** What it throws fails the call. */
  answer(request: Request, call: GrpcCall): object | Promise<object>
  /** The error as this service tells it. */
  toCallError(error: ServeError, request: Request): CallError
}

/** The handler that grpc-js calls for an rpc of this `name`. */
export function unaryRpc<Request>(log: GrpcLog, name: string, { answer, toCallError }: UnaryRpc<Request>) {
  const run = async (request: Request, call: GrpcCall): Promise<object> => answer(request, call)
  return (surface: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>): void => {
    const { request } = surface
    const call = callOf(surface)
    run(request, call).then(
      (message) => respond(null, message),
      (thrown: unknown) => {
        const error = withModelMeant(ServeError.from(thrown), call.models)
        logFailure(log, name, error)
        respond(toCallError(error, request))
      },
    )
  }
}
