import { status as Status } from '@grpc/grpc-js'
import type { ErrorCode, ServeError } from '../../../common/errors.ts'
import { errorText } from './error-text.ts'
import { type CallError, fromHttpStatus, printable, withRetry } from '../../edge/grpc/call-error.ts'

/**
 * gRPC status of each code, chosen by what Seldon Core's agent does with it (docs/seldon.md): it repeats
 * UNAVAILABLE and RESOURCE_EXHAUSTED, and it loads the model after NOT_FOUND and UNAVAILABLE. The others
 * are INTERNAL.
 */
const STATUSES: Partial<Record<ErrorCode, Status>> = {
  INVALID_ARGUMENT: Status.INVALID_ARGUMENT,
  MALFORMED_BODY: Status.INVALID_ARGUMENT,
  INVALID_TENSOR: Status.INVALID_ARGUMENT,
  TENSOR_MISMATCH: Status.INVALID_ARGUMENT,
  UNSUPPORTED_ENCODING: Status.INVALID_ARGUMENT,
  PAYLOAD_TOO_LARGE: Status.RESOURCE_EXHAUSTED,
  ROUTE_NOT_FOUND: Status.UNIMPLEMENTED,
  METHOD_NOT_ALLOWED: Status.UNIMPLEMENTED,
  UNAUTHORIZED: Status.UNAUTHENTICATED,
  INVALID_API_KEY: Status.UNAUTHENTICATED,
  FOREIGN_PAGE: Status.PERMISSION_DENIED,
  API_DISABLED: Status.PERMISSION_DENIED,
  RATE_LIMITED: Status.RESOURCE_EXHAUSTED,
  MODEL_NOT_FOUND: Status.NOT_FOUND,
  VERSION_NOT_FOUND: Status.NOT_FOUND,
  MODEL_NOT_READY: Status.UNAVAILABLE,
  // Loading it again would start the same workers again.
  MODEL_FAILED: Status.FAILED_PRECONDITION,
  CONFLICT: Status.ALREADY_EXISTS,
  DEFAULT_VERSION: Status.FAILED_PRECONDITION,
  INVALID_MODEL: Status.INVALID_ARGUMENT,
  INVALID_ARCHIVE: Status.INVALID_ARGUMENT,
  UNTRUSTED_ARCHIVE: Status.INVALID_ARGUMENT,
  DOWNLOAD_FAILED: Status.INVALID_ARGUMENT,
  WORKFLOW_NOT_FOUND: Status.NOT_FOUND,
  INVALID_WORKFLOW: Status.INVALID_ARGUMENT,
  INVALID_DAG: Status.INVALID_ARGUMENT,
  // Not NOT_FOUND: the model is there.
  REQUEST_NOT_FOUND: Status.FAILED_PRECONDITION,
  // An operator scaled it to none: a load would undo that.
  NO_WORKER: Status.FAILED_PRECONDITION,
  QUEUE_FULL: Status.RESOURCE_EXHAUSTED,
  SHUTTING_DOWN: Status.UNAVAILABLE,
  QUEUE_TIMEOUT: Status.DEADLINE_EXCEEDED,
  RESPONSE_TIMEOUT: Status.DEADLINE_EXCEEDED,
  REQUEST_TIMEOUT: Status.DEADLINE_EXCEEDED,
  DEADLINE_EXCEEDED: Status.DEADLINE_EXCEEDED,
  CLIENT_STALLED: Status.DEADLINE_EXCEEDED,
  CANCELLED: Status.CANCELLED,
  WORKER_LOST: Status.UNAVAILABLE,
}

/** Statuses after which the agent, or a client with a usual retry policy, sends the call again. */
const REPEATED: ReadonlySet<Status> = new Set([
  Status.UNAVAILABLE,
  Status.RESOURCE_EXHAUSTED,
  Status.NOT_FOUND,
])

/**
 * Statuses that a handler chose as for HTTP, where the usual one would make the agent load the model or
 * repeat the call in vain. After a 503 it repeats the call, as the handler says, and loads nothing.
 */
const CHOSEN: ReadonlyMap<number, Status> = new Map([
  [404, Status.INVALID_ARGUMENT],
  [413, Status.INVALID_ARGUMENT],
  [422, Status.INVALID_ARGUMENT],
  [503, Status.RESOURCE_EXHAUSTED],
])

export function callError(error: ServeError): CallError {
  return withRetry({ code: statusOf(error), details: printable(errorText(error)) }, error)
}

function statusOf({ code, status = 500, begun }: ServeError): Status {
  if (code === 'HANDLER_REJECTED') return CHOSEN.get(status) ?? fromHttpStatus(status)
  const own = STATUSES[code] ?? Status.INTERNAL
  return begun && REPEATED.has(own) ? Status.INTERNAL : own
}
