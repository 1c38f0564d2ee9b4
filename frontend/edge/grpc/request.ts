import type { Deadline, Metadata } from '@grpc/grpc-js'
import { headerLine, isCredentialHeader } from '../../../common/headers.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'
import type { JobRequest } from '../../jobs/job-request.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplySink } from '../../jobs/reply-sink.ts'

/** How much earlier than our clock says a client's own deadline may fire. */
const DEADLINE_TOLERANCE_MS = 50

/** Milliseconds since the epoch; undefined without a deadline. */
export function deadlineOf(call: { getDeadline(): Deadline }): number | undefined {
  const deadline = Number(call.getDeadline())
  return Number.isFinite(deadline) ? deadline : undefined
}

/** Why a cancelled call was cancelled. */
export function cancelReason(deadline: number | undefined): AbandonReason {
  const past = deadline !== undefined && Date.now() >= deadline - DEADLINE_TOLERANCE_MS
  return past ? 'deadline' : 'client left'
}

/** The client's metadata, without credentials, gRPC's own and binary values. */
export function requestHeaders(metadata: Metadata): string {
  let lines = ''
  for (const [name, value] of Object.entries(metadata.getMap())) {
    if (typeof value === 'string' && !isWithheld(name)) lines += headerLine(name, value)
  }
  return lines
}

function isWithheld(name: string): boolean {
  return isCredentialHeader(name) || name.startsWith('grpc-')
}

/** A sink that wants to know its job. */
export interface JobReply extends ReplySink {
  job?: Job | undefined
}

/**
 * Makes a job of a unary call's request, and cancels it when the client leaves. @throws ServeError of
 * `submit`
 */
export function submitUnary(
  models: { submit(job: Job): void },
  call: { on(event: 'cancelled', listener: () => void): unknown },
  request: JobRequest,
  reply: JobReply,
): void {
  const job = new Job(request, reply)
  reply.job = job
  models.submit(job)
  // Also emitted after every normal end; by then the job has ended and `cancel` does nothing.
  call.on('cancelled', () => {
    if (!job.ended) job.cancel(cancelReason(request.deadline))
  })
}
