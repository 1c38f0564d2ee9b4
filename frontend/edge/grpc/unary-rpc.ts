import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { logFailure, type CallError, type GrpcLog } from './call-error.ts'

/** One rpc that is no prediction. */
interface UnaryRpc<Request> {
  /** What it throws fails the call. */
  answer(request: Request): object | Promise<object>
  /** The error as this service tells it. */
  toCallError(error: ServeError, request: Request): CallError
}

/** The handler that grpc-js calls for an rpc of this `name`. */
export function unaryRpc<Request>(
  { log }: { readonly log: GrpcLog },
  name: string,
  { answer, toCallError }: UnaryRpc<Request>,
) {
  const run = async (request: Request): Promise<object> => answer(request)
  return ({ request }: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>): void => {
    run(request).then(
      (message) => respond(null, message),
      (thrown: unknown) => {
        const error = ServeError.from(thrown)
        logFailure(log, name, error)
        respond(toCallError(error, request))
      },
    )
  }
}
