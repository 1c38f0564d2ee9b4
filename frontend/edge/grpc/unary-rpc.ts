import type { sendUnaryData, ServerUnaryCall } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { withModelMeant } from '../../models/model-errors.ts'
import type { ModelOperations } from '../../models/operations.ts'
import { logFailure, type CallError, type GrpcLog } from './call-error.ts'
import type { Call } from './caller.ts'

/** One rpc that is no prediction. */
interface UnaryRpc<Request> {
  /** What it throws fails the call. */
  answer(request: Request, call: Call): object | Promise<object>
  /** The error as this service tells it. */
  toCallError(error: ServeError, request: Request): CallError
}

interface UnaryDeps {
  readonly log: GrpcLog
  /** The models that the caller may use. */
  readonly operationsFor: (call: Call) => { readonly models: Pick<ModelOperations, 'list'> }
}

/** The handler that grpc-js calls for an rpc of this `name`. */
export function unaryRpc<Request>(
  { log, operationsFor }: UnaryDeps,
  name: string,
  { answer, toCallError }: UnaryRpc<Request>,
) {
  const run = async (request: Request, call: Call): Promise<object> => answer(request, call)
  return (call: ServerUnaryCall<Request, object>, respond: sendUnaryData<object>): void => {
    const { request } = call
    run(request, call).then(
      (message) => respond(null, message),
      (thrown: unknown) => {
        const error = withModelMeant(ServeError.from(thrown), operationsFor(call).models)
        logFailure(log, name, error)
        respond(toCallError(error, request))
      },
    )
  }
}
