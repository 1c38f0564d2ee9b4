import { status as Status } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import { logFailure, type CallError, type GrpcLog } from './call-error.ts'

const FAILED: CallError = { code: Status.INTERNAL, details: 'Internal server error' }

/**
 * A listener of one call: grpc-js catches no exception there, so it would end the process. It fails this call
 * alone, as `fail` does it: not at all where the call is over already.
 */
export function guarded<Args extends unknown[]>(
  log: GrpcLog,
  fail: (error: CallError) => void,
  listener: (...args: Args) => void,
): (...args: Args) => void {
  return (...args) => {
    try {
      listener(...args)
    } catch (thrown) {
      logFailure(log, 'a stream', ServeError.from(thrown))
      fail(FAILED)
    }
  }
}
