import type { Metadata } from '@grpc/grpc-js'
import { ServeError } from '../../../common/errors.ts'
import type { Authorizer } from '../../auth/authorizer.ts'
import { Job, type JobRequest } from '../../jobs/job.ts'
import type { ModelOperations } from '../../models/operations.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'
import { cancelReason } from './deadline.ts'
import { guarded } from './guarded.ts'
import type { GrpcLog } from './log.ts'
import { authorize } from './token.ts'

/** The parts of a grpc-js call that are used here. */
interface IncomingCall {
  readonly metadata: Metadata
  on(event: 'cancelled', listener: () => void): unknown
}

type Submitter = Pick<ModelOperations, 'submit'>

/** A sink that wants to know its job. */
interface CallReply extends ReplySink {
  job: Job | undefined
}

/**
 * Gives a call's request to the models, and cancels its job when the client leaves. Undefined: it was refused, and the reply has
 * failed already.
 */
export function submitCall<Call extends IncomingCall>(
  { models, authorizer, log }: { models: Submitter; authorizer: Authorizer; log: GrpcLog },
  call: Call,
  reply: CallReply,
  toRequest: (call: Call) => JobRequest,
): Job | undefined {
  try {
    authorize(authorizer, 'inference', call)
    return submitJob({ models, log }, call, toRequest(call), reply)
  } catch (thrown) {
    reply.fail(ServeError.from(thrown))
    return undefined
  }
}

/** The same for a request that has been admitted. @throws ServeError, see ModelOperations.submit */
export function submitJob(
  { models, log }: { models: Submitter; log: GrpcLog },
  call: IncomingCall,
  request: JobRequest,
  reply: CallReply,
): Job {
  const job = new Job(request, reply)
  reply.job = job
  models.submit(job)
  // Also emitted after every normal end; by then the job has ended and `cancel` does nothing.
  const leave = (): void => {
    if (!job.ended) job.cancel(cancelReason(request.deadline))
  }
  call.on('cancelled', guarded(log, overAlready, leave))
  return job
}

function overAlready(): void {
  // Nobody hears an answer any more.
}
