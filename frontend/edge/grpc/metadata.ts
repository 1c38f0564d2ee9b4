import { type Deadline, Metadata } from '@grpc/grpc-js'
import { headerLine, isCredentialHeader } from '../../../common/headers.ts'
import type { JobRequest } from '../../jobs/job-request.ts'
import { Job } from '../../jobs/job.ts'
import type { ReplyHead, ReplySink } from '../../jobs/reply-sink.ts'
import type { AbandonReason } from '../../jobs/scheduler.ts'

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

/**
 * Makes a job of a unary call's request, and cancels it when the client leaves. @throws ServeError of
 * `submit`
 */
export function submitUnary(
  models: { submit(job: Job): void },
  call: { on(event: 'cancelled', listener: () => void): unknown },
  request: JobRequest,
  reply: ReplySink,
): void {
  const job = new Job(request, reply)
  models.submit(job)
  // Also emitted after every normal end; by then the job has ended and `cancel` does nothing.
  call.on('cancelled', () => {
    if (!job.ended) job.cancel(cancelReason(request.deadline))
  })
}

/** HTTP status that the handler set; absent when it is 200. */
const STATUS_KEY = 'ts-response-status'
/** Content type that the handler set; gRPC needs `content-type` for itself. */
const CONTENT_TYPE_KEY = 'ts-response-content-type'

/** Names that HTTP/2 or gRPC keep for themselves; sending one would break the call. */
const RESERVED = new Set([
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'host',
  'http2-settings',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
])

const LEGAL_NAME = /^[0-9a-z_.-]+$/
const LEGAL_VALUE = /^[ -~]*$/

/**
 * What the handler said beside its body, as initial metadata: status, content type, and its headers as far as
 * gRPC can carry them (ASCII, no reserved or binary names; others are left out). Undefined when it said
 * nothing.
 */
export function replyMetadata(head: ReplyHead): Metadata | undefined {
  if (head.status === 200 && head.contentType === undefined && isEmpty(head.headers)) return undefined
  const metadata = new Metadata()
  for (const [name, value] of Object.entries(head.headers)) {
    const key = name.toLowerCase()
    if (isCarried(key, value)) metadata.set(key, value)
  }
  if (head.status !== 200) metadata.set(STATUS_KEY, String(head.status))
  if (head.contentType !== undefined && LEGAL_VALUE.test(head.contentType)) {
    metadata.set(CONTENT_TYPE_KEY, head.contentType)
  }
  return metadata
}

function isEmpty(headers: Readonly<Record<string, string>>): boolean {
  for (const _ in headers) return false
  return true
}

function isCarried(key: string, value: string): boolean {
  return (
    LEGAL_NAME.test(key) &&
    LEGAL_VALUE.test(value) &&
    !key.startsWith('grpc-') &&
    !key.endsWith('-bin') &&
    !RESERVED.has(key)
  )
}
